// Merging partial results of attention on the CPU, in fp64.
#pragma once

#include <optional>
#include <vector>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// The tensors mean what those of jitney::MergeStatesArgs mean.
struct MergeStates {
    struct Part {
        Tensor out;  // as the result's, or with the number of parts before that
        Tensor lse;
    };
    std::vector<Part> parts;
    Tensor out;                 // [batch, q_len, heads, head_dim] or [total_q, heads, head_dim]
    std::optional<Tensor> lse;  // fp32 [batch, heads, q_len] or [total_q, heads]
};

// Throws Error(invalid_argument) where shapes disagree.
void merge_states(const MergeStates& call);

}  // namespace jitney::reference
