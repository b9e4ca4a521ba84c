// The layers of a model that attend, one after the other.
#pragma once

#include <vector>

#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"
#include "policy/models/model.hpp"
#include "policy/models/read.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {

// Layers without attention are noted. Those that no kernel serves say why. Throws Error where the
// model has no layers of attention, or where fields contradict each other.
std::vector<ModelLayer> read_layers(const Fields& config, const ModelType& type,
                                    const ModelOverrides& overrides, Findings& findings);

}  // namespace jitney::policy
