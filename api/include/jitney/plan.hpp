// Plans: an attention call checked, chosen and loaded once, and run many times.
#pragma once

#include <cstddef>
#include <memory>

#include "jitney/attention.hpp"
#include "jitney/explain.hpp"

namespace jitney {

struct PreparedPlan;

// A handle; copies are of the same plan, which any number of threads may run at a time.
//
// A plan is made from a call's shapes, which are the most that it will hold: the batch, the rows of
// q, the keys (max_kv_len, or what the tables have room for). Running it needs no choice and no
// look-up, and loads nothing, so that it can be captured in a graph at once. Who has which rows and
// keys is read on the device: whatever qo_indptr, kv_lens, tables and pages hold then, the captured
// launch follows. Requests of length 0 are legal, which is how a batch is filled up; rows that
// belong to no request are not touched. qo_indptr_host steers nothing.
class JITNEY_API AttentionPlan {
  public:
    // Checks the call as attention() does and loads what it will run, compiling where that is
    // needed. Pointers may be null: then those of the calls are aligned to 16 bytes; others have to
    // be right. A Scope or the environment counts here, and no more when the plan runs. For host
    // tensors it is a plan of the reference backend.
    explicit AttentionPlan(const AttentionArgs& args);
    // No moves: they would leave a handle of nothing.
    AttentionPlan(const AttentionPlan&) = default;
    AttentionPlan& operator=(const AttentionPlan&) = default;
    ~AttentionPlan() = default;

    // Runs the call of the plan with other data: all but the addresses, max_kv_len and how many
    // numbers kv_page_indices has is as it was when the plan was made. Throws Error where it is
    // not, and for whatever attention() would refuse, before anything is launched.
    void run(const AttentionArgs& args, Stream stream = nullptr) const;

    // What a caller's own workspace has to have; 0 where it needs none.
    std::size_t workspace_bytes() const noexcept;

    // What it runs, in which geometry. Of a plan on the host no more than chosen, which is
    // "reference"; empty where there is nothing to compute.
    const Explanation& explanation() const noexcept;

  private:
    std::shared_ptr<const PreparedPlan> plan_;
};

}  // namespace jitney
