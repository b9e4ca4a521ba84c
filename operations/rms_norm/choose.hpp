// Which specialization of rms_norm runs a problem, and in which geometry.
#pragma once

#include <cstdint>

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct RmsNormProblem {
    int format = 0;         // a jitney::Format
    int weight = 0;         // that of the weights, or kNoWeight
    int result = 0;         // a jitney::RowResult
    std::int64_t rows = 0;  // at least 1
    int d = 0;              // at least 1
    bool residual = false;
    bool center = false;
    bool bias = false;
    bool one_plus = false;
    bool aligned = true;  // every pointer and stride to 16 bytes
};

struct RmsNormChoice {
    Spec spec;
    Geometry geometry;
};

// The one candidate, and its choice. It depends on the number of rows in its grid alone: prewarming
// for one is prewarming for all.
Ranking<RmsNormChoice> rank_rms_norm(const RmsNormProblem& problem, const DeviceFacts& facts);

}  // namespace jitney::policy
