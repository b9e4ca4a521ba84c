// Which specialization of append_kv runs a problem, and in which geometry.
#pragma once

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

// How an append rotates K; beyond the first, a jitney::RotaryStyle plus one.
enum class AppendRotary : int { none, interleaved, half_split };

struct AppendKvProblem {
    int format = 0;           // a jitney::Format
    std::int64_t tokens = 0;  // new rows of all requests
    int batch = 0;
    int kv_heads = 0;
    int head_dim = 0;
    bool packed = false;  // requests of any length one behind the other
    bool paged = false;
    bool aligned = true;  // every pointer and stride, the tables' included, to 16 bytes
    AppendRotary rotary = AppendRotary::none;
    int rotary_dim = 0;      // 0 without rotary
    int q_heads = 0;         // of a q that is rotated too
    bool q_in_place = true;  // what lies past rotary_dim stays as it is
};

struct AppendKvChoice {
    Spec spec;
    Geometry geometry;
    int k_items = 0;  // pieces of work a head
    int v_items = 0;
    int q_items = 0;
    int tokens_a_block = 1;
};

// The one candidate, and its choice.
Ranking<AppendKvChoice> rank_append_kv(const AppendKvProblem& problem, const DeviceFacts& facts);

}  // namespace jitney::policy
