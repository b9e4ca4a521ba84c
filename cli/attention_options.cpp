#include "cli/attention_options.hpp"

#include <CLI/CLI.hpp>
#include <limits>

#include "cli/arguments.hpp"

namespace jitney::cli {

void AttentionOptions::add_to(CLI::App& command) {
    constexpr int kMost = std::numeric_limits<int>::max();
    command.add_flag("--causal", causal, "Query i sees the keys j <= i + kv_len - q_len");
    // What a float holds, as it is one to the call.
    constexpr double kLeast = std::numeric_limits<float>::denorm_min();
    constexpr double kLargest = std::numeric_limits<float>::max();
    add_real(command, "--scale", scale, kLeast, kLargest,
             "Factor of the scores (1/sqrt(head_dim))");
    add_integer(command, "--window-left", window_left, -1, kMost,
                "Keys before its own place that a query sees (-1: all)");
    add_integer(command, "--window-right", window_right, -1, kMost,
                "Keys after its own place that a query sees (-1: all)");
    add_real(command, "--softcap", softcap, kLeast, kLargest, "Scores become X * tanh(score / X)");
    add_integer(command, "--max-kv-len", max_kv_len, 0, kMost,
                "About how many keys the longest request has, where tables are far wider");
    command.add_flag("--batch-invariant", batch_invariant,
                     "The result of a request does not depend on who shares the batch");
}

void AttentionOptions::apply(AttentionArgs& args) const {
    args.causal = causal;
    if (scale) args.scale = static_cast<float>(*scale);
    args.window_left = window_left;
    args.window_right = window_right;
    if (softcap) args.softcap = static_cast<float>(*softcap);
    if (max_kv_len >= 0) args.max_kv_len = max_kv_len;
    args.batch_invariant = batch_invariant;
}

}  // namespace jitney::cli
