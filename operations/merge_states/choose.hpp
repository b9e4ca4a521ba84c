// Which specialization of attn_merge_states runs a problem, and in which geometry.
#pragma once

#include <vector>

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

// For a problem that rank_merge_states accepts.
MergeStatesChoice choose_merge_states(const MergeStatesProblem& problem, const DeviceFacts& facts);

// The one candidate, with its reason.
Candidate rank_merge_states(const MergeStatesProblem& problem, const DeviceFacts& facts);

// What merging results of that shape can ask for, whatever the alignment.
std::vector<Spec> merge_states_catalogue(const MergeStatesProblem& shape, const DeviceFacts& facts);

}  // namespace jitney::policy
