// The options of attention that are numbers and flags: the same of run, explain and bench.
#pragma once

#include <optional>

#include "jitney/attention.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct AttentionOptions {
    bool causal = false;
    std::optional<double> scale;
    int window_left = -1;
    int window_right = -1;
    std::optional<double> softcap;
    int max_kv_len = -1;  // -1: not given
    bool batch_invariant = false;

    void add_to(CLI::App& command);
    void apply(AttentionArgs& args) const;
};

}  // namespace jitney::cli
