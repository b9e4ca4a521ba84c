// The rows of a model that kernels work on: its norms, and the gates of its feed-forward layers.
#pragma once

#include <vector>

#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"
#include "policy/models/model.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {

// Reads what the file and the type tell, and, where these leave open which of two forms a norm has,
// both. A size or an activation that is not known is noted.
void read_rows(const Fields& config, const ModelType& type, Model& model, Findings& findings);

}  // namespace jitney::policy
