// Which specialization of rotary_emb runs a problem, and in which geometry.
#pragma once

#include <vector>

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct RotaryProblem {
    int format = 0;           // a jitney::Format
    int style = 0;            // a jitney::RotaryStyle
    std::int64_t tokens = 0;  // batch * length, at least 1
    int heads = 0;            // of all tensors together
    int head_dim = 0;
    int rotary_dim = 0;
    bool in_place = false;  // all tensors: what lies past rotary_dim stays as it is
    bool aligned = true;    // every pointer and stride, the tables' included, to 16 bytes
};

struct RotaryChoice {
    Spec spec;
    Geometry geometry;
    int pairs = 1;  // that a thread rotates at once
    int items = 0;  // pieces of work a head
    int heads_at_once = 1;
    int threads_a_token = 1;
    int tokens_a_block = 1;
};

// The one candidate, and its choice.
Ranking<RotaryChoice> rank_rotary(const RotaryProblem& problem, const DeviceFacts& facts);

// The specializations that rotary of such a shape and alignment can ask for.
std::vector<Spec> rotary_catalogue(const RotaryProblem& shape, const DeviceFacts& facts);

}  // namespace jitney::policy
