// Which layers of a model see what, one after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/models/fields.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {

struct KindOfLayer {
    LayerKind kind = LayerKind::full;
    std::string name;  // as the configuration calls it: "linear_attention"
};

struct LayerKinds {
    std::vector<KindOfLayer> layers;
    bool counted = false;          // else it is one of each kind
    bool windows_of_some = false;  // there is a window, and nothing says which layers have it
};

// The window of a model's layers, under any of its names: how many keys a query sees, itself among
// them; of each layer where the file has a list. Nothing where there is none.
std::optional<std::vector<int>> window_of(const Fields& config, const ModelType& type);

// Throws Error where a list names what has to be there, and it is not.
LayerKinds layer_kinds(const Fields& config, const ModelType& type);

}  // namespace jitney::policy
