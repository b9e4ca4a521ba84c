// What a model's config.json, as transformers writes it, says about its attention.
#pragma once

#include <string>

#include "operations/model.hpp"

namespace jitney::cli {

// What the command line says instead of the file; empty: nothing.
struct ModelOverrides {
    std::string format;  // "bf16"
    std::string style;   // "interleaved"
};

// Throws Error: io where the file can't be read, invalid_argument where it describes no model whose
// attention the kernels can be chosen for.
policy::Model read_model_config(const std::string& path, const ModelOverrides& overrides);

}  // namespace jitney::cli
