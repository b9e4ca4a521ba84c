// Fields that by their names may change the shape of attention, and that nobody here reads.
#pragma once

#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"

namespace jitney::policy {

// Each is named as not served, so that a model is not half understood in silence.
void find_strangers(const Fields& config, Findings& findings);

}  // namespace jitney::policy
