// Which specialization of attn_merge_states runs a problem, and in which geometry.
#pragma once

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct MergeStatesProblem {
    int format = 0;         // a jitney::Format
    std::int64_t rows = 0;  // of all heads, at least 1
    int head_dim = 0;
    bool aligned = true;  // every pointer and stride of the results to 16 bytes
};

struct MergeStatesChoice {
    Spec spec;
    Geometry geometry;
};

// The one candidate, and its choice.
Ranking<MergeStatesChoice> rank_merge_states(const MergeStatesProblem& problem,
                                             const DeviceFacts& facts);

}  // namespace jitney::policy
