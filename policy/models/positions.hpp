// How a layer's attention learns of positions: by rotary embedding, by ALiBi, or not at all.
#pragma once

#include <optional>

#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {

struct LayerPositions {
    bool alibi = false;
    int rotary_dim = 0;  // 0: no rotary embedding
    bool interleaved = false;
    bool half_split = false;  // both where the style is not known
};

// `style`: a jitney::RotaryStyle that a caller says; none: what the model means. Throws Error where
// the elements that are rotated can't be meant.
LayerPositions layer_positions(const Fields& config, const ModelType& type, LayerKind kind,
                               int head_dim, std::optional<int> style, Findings& findings);

}  // namespace jitney::policy
