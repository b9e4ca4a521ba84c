// In which geometry fp8_update runs: one block, whatever the history.
#pragma once

#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

struct Fp8UpdateChoice {
    Spec spec;
    Geometry geometry;
};

Fp8UpdateChoice choose_fp8_update(const DeviceFacts& facts);

}  // namespace jitney::policy
