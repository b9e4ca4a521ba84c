// Plans: a call checked, chosen and loaded once, and run many times.
//
//     jitney::Plan<jitney::Fp8GemmArgs> plan(args);
//     plan.run(args, stream);
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "jitney/attention.hpp"
#include "jitney/explain.hpp"

namespace jitney {

template <class Args>
struct PreparedPlan;

// A handle; copies are of the same plan, which any number of threads may run at a time. There is
// one for every operation that has an explain(): Args is the struct that its call takes.
//
// Running a plan needs no choice and no look-up, allocates nothing and loads nothing, so that it
// can be captured in a graph at once.
//
// A plan of attention is made from shapes that are the most that it will hold: the batch, the rows
// of q, the keys (max_kv_len, or what the tables have room for). Who has which rows and keys is
// read on the device: whatever qo_indptr, kv_lens, tables and pages hold then, the captured launch
// follows. Requests of length 0 are legal, which is how a batch is filled up; rows that belong to
// no request are not touched. qo_indptr_host steers nothing.
template <class Args>
class JITNEY_API Plan {
  public:
    // The type of what explain() tells of such a call.
    using Explained = decltype(explain(std::declval<const Args&>()));

    // A plan of no call: it can be assigned to, and running it throws Error. One that was moved
    // from is such a plan.
    Plan() noexcept = default;
    // Checks the call as the operation does and loads what it will run, compiling where that is
    // needed. Pointers may be null: then those of the calls are aligned to 16 bytes, and no tensor
    // shares memory with another one that is written; others have to be right. A Scope or the
    // environment counts here, and no more when the plan runs. For host tensors it is a plan of the
    // reference backend.
    explicit Plan(const Args& args);

    // Whether it is of a call.
    explicit operator bool() const noexcept { return plan_ != nullptr; }

    // Runs the call of the plan with other data: all but the addresses and the workspace is as it
    // was when the plan was made; of attention, max_kv_len, how many numbers kv_page_indices has
    // and the logits function's values may be others, too. Tensors are aligned as those of the plan
    // were, or better, and results take the place of their sources where those did. Throws Error
    // where it is not so, and for whatever the operation would refuse, before anything is launched.
    void run(const Args& args, Stream stream = nullptr) const;

    // What a caller's own workspace has to have; 0 where it needs none.
    std::size_t workspace_bytes() const noexcept;

    // What it runs, in which geometry. Of a plan on the host no more than chosen, which is
    // "reference" (of several launches, one of that spec); empty where there is nothing to compute.
    const Explained& explanation() const noexcept;

  private:
    std::shared_ptr<const PreparedPlan<Args>> plan_;
};

using AttentionPlan = Plan<AttentionArgs>;

}  // namespace jitney
