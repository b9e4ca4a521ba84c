// Reads of a model's configuration, the config.json that transformers writes, its attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/models/model.hpp"

namespace jitney::policy {

// A caller may say this instead of the file.
struct ModelOverrides {
    std::optional<int> format = {};  // a jitney::Format
    std::optional<int> style = {};   // a jitney::RotaryStyle
    std::uint64_t logits = 0;        // digest of the logits function of layers that need one
};

struct ModelReading {
    std::string type;  // model_type of the part that writes text; empty: the file has none
    Model model;
    std::vector<std::string> notes;     // what was assumed, and what was passed over
    std::vector<std::string> unserved;  // what changes a kernel and is not served
};

// `file` is how sentences call the text. Throws Error (invalid_argument) where it describes no
// model whose attention can be told, with all that is missing.
ModelReading read_model(std::string_view text, std::string file, const ModelOverrides& overrides);

}  // namespace jitney::policy
