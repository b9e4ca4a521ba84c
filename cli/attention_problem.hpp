// An attention call that explain and bench are asked about: shapes and options instead of tensors.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/attention_options.hpp"
#include "cli/logits_option.hpp"
#include "jitney/attention.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct AttentionProblem {
    Shape q;                  // of four sizes, or of three: ragged
    std::vector<int> q_ends;  // where each request's queries end, after a 0; empty: not known
    Shape kv;                 // q's where it is empty; of three sizes: ragged
    int page_size = 0;        // 0: not in pages
    bool lengths = false;     // keys of several lengths in a padded cache
    Shape mask;
    bool alibi = false;
    bool sinks = false;
    int append = 0;  // new keys a request
    std::string format = "bf16";
    AttentionOptions call;
    LogitsOption logits;  // of a command that makes no call, which adds it itself

    void add_to(CLI::App& command);
    // The call, its pointers null, and qo_indptr_host in the memory of this object.
    AttentionArgs arguments(Device device) const;

    std::int64_t batch() const;
    // How many queries and keys a request has: shared evenly where only the sum is known.
    std::int64_t q_len(std::int64_t request) const;
    std::int64_t kv_len(std::int64_t request) const;
    // All requests have the same number of either.
    bool equal_lengths() const { return !ragged_queries() && !ragged_keys(); }

  private:
    const Shape& keys() const { return kv.empty() ? q : kv; }
    bool ragged_queries() const { return q.size() == 3; }
    bool ragged_keys() const { return keys().size() == 3; }
    void check() const;
    void place_keys(AttentionArgs& args, Device device) const;
};

}  // namespace jitney::cli
