// The needs of a quantised model beyond attention in 16 bits.
#pragma once

#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"

namespace jitney::policy {

// A cache in FP8 is not served; linear layers on FP8 are as far as prewarm --linear has them.
void read_quantization(const Fields& config, Findings& findings);

}  // namespace jitney::policy
