// Which specialization of gated_activation runs a problem, and in which geometry.
#pragma once

#include <cstdint>

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct GatedActivationProblem {
    int format = 0;         // a jitney::Format
    int activation = 0;     // a jitney::GateFunction
    int result = 0;         // a jitney::RowResult
    std::int64_t rows = 0;  // at least 1
    int d = 0;              // at least 1
    bool aligned = true;    // every pointer and stride to 16 bytes
};

struct GatedActivationChoice {
    Spec spec;
    Geometry geometry;
    int pieces = 1;  // of a row
};

// The one candidate, and its choice. It depends on the number of rows in its grid alone: prewarming
// for one is prewarming for all.
Ranking<GatedActivationChoice> rank_gated_activation(const GatedActivationProblem& problem,
                                                     const DeviceFacts& facts);

}  // namespace jitney::policy
