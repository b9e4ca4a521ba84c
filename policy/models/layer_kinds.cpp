#include "policy/models/layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "jitney/error.hpp"
#include "policy/models/names.hpp"

namespace jitney::policy {
namespace {

constexpr int kMaxLayers = 100000;

struct NamedKind {
    std::string_view name;
    LayerKind kind;
};

// As layer_types and its like call them.
constexpr std::array kNamedKinds = {
    NamedKind{"full_attention", LayerKind::full},
    NamedKind{"attention", LayerKind::full},
    NamedKind{"full", LayerKind::full},
    NamedKind{"global", LayerKind::full},
    NamedKind{"global_attention", LayerKind::full},
    NamedKind{"hybrid", LayerKind::full},  // beside a recurrence
    NamedKind{"sliding_attention", LayerKind::sliding},
    NamedKind{"sliding_window_attention", LayerKind::sliding},
    NamedKind{"sliding", LayerKind::sliding},
    NamedKind{"local", LayerKind::sliding},
    NamedKind{"local_attention", LayerKind::sliding},
    NamedKind{"hybrid_sliding", LayerKind::sliding},
    NamedKind{"chunked_attention", LayerKind::chunked},
    NamedKind{"cross_attention", LayerKind::cross},
    NamedKind{"linear_attention", LayerKind::passed},
    NamedKind{"lightning_attention", LayerKind::passed},
    NamedKind{"conv", LayerKind::passed},
    NamedKind{"short_conv", LayerKind::passed},
    NamedKind{"mamba", LayerKind::passed},
    NamedKind{"mamba2", LayerKind::passed},
    NamedKind{"recurrent", LayerKind::passed},
    NamedKind{"rwkv", LayerKind::passed},
    NamedKind{"mlp", LayerKind::passed},
    NamedKind{"moe", LayerKind::passed},
    NamedKind{"dense", LayerKind::passed},
    NamedKind{"sparse", LayerKind::passed},
};

KindOfLayer named(const std::string& name) {
    const auto* const found =
        std::find_if(kNamedKinds.begin(), kNamedKinds.end(),
                     [&name](const NamedKind& each) { return each.name == name; });
    return {found == kNamedKinds.end() ? LayerKind::other : found->kind, name};
}

KindOfLayer of_kind(LayerKind kind) {
    switch (kind) {
        case LayerKind::sliding:
            return {kind, "sliding_attention"};
        case LayerKind::chunked:
            return {kind, "chunked_attention"};
        case LayerKind::cross:
            return {kind, "cross_attention"};
        case LayerKind::passed:
            return {kind, "without attention"};
        case LayerKind::full:
        case LayerKind::other:
            break;
    }
    return {LayerKind::full, "full_attention"};
}

using Layers = std::vector<KindOfLayer>;

// A letter a layer, over and over.
std::optional<Layers> lettered(const Fields& config, std::string_view field, int count,
                               std::string_view letters, std::initializer_list<LayerKind> kinds) {
    if (!config.is_text(field)) return std::nullopt;
    const std::string pattern = *config.text(field);
    Layers layers;
    const std::size_t length = count > 0 ? static_cast<std::size_t>(count) : pattern.size();
    for (std::size_t i = 0; !pattern.empty() && i < length; ++i) {
        const std::size_t letter = letters.find(pattern[i % pattern.size()]);
        if (letter == letters.npos) {
            config.refuse_value(field, fmt::format("a string of the letters {}", letters));
        }
        layers.push_back(of_kind(kinds.begin()[letter]));
    }
    if (layers.empty()) config.refuse_value(field, "a letter a layer");
    return layers;
}

// A name a layer; block_types is repeated.
std::optional<Layers> listed_names(const Fields& config, int count) {
    for (const char* field :
         {"layer_types", "layers_block_type", "block_types", "attention_layers", "attn_layers"}) {
        if (!config.is_list(field)) continue;
        const std::vector<std::string> names = *config.texts(field);
        if (names.empty()) continue;
        const bool repeated = std::string_view(field) == "block_types" && count > 0;
        Layers layers;
        const std::size_t length = repeated ? static_cast<std::size_t>(count) : names.size();
        for (std::size_t i = 0; i < length; ++i)
            layers.push_back(named(names[i % names.size()]));
        return layers;
    }
    if (config.has("layer_types")) config.texts("layer_types");  // throws
    return std::nullopt;
}

// A number a layer.
std::optional<Layers> numbered(const Fields& config) {
    struct Numbered {
        std::string_view field;
        std::array<LayerKind, 2> kinds;
    };
    constexpr std::array kFields = {
        Numbered{"attn_type_list", {LayerKind::passed, LayerKind::full}},
        Numbered{"hybrid_layer_pattern", {LayerKind::full, LayerKind::sliding}},
    };
    for (const auto& [field, kinds] : kFields) {
        if (!config.is_list(field)) continue;
        const auto numbers = config.integers(field, 0, 1);
        if (!numbers) continue;
        Layers layers;
        for (const int number : *numbers)
            layers.push_back(of_kind(kinds[static_cast<std::size_t>(number)]));
        return layers;
    }
    return std::nullopt;
}

// The numbers of the layers of one kind; the others are of another.
std::optional<Layers> indexed(const Fields& config, int count) {
    struct Indexed {
        std::string_view field;
        LayerKind these;
        LayerKind others;
    };
    constexpr std::array kFields = {
        Indexed{"attn_layer_indices", LayerKind::full, LayerKind::passed},
        Indexed{"full_attn_idxs", LayerKind::full, LayerKind::passed},
        Indexed{"hybrid_layer_ids", LayerKind::full, LayerKind::passed},
        Indexed{"cross_attention_layers", LayerKind::cross, LayerKind::full},
    };
    for (const auto& [field, these, others] : kFields) {
        if (!config.is_list(field)) continue;
        const auto numbers = config.integers(field, 0, kMaxLayers);
        if (!numbers) continue;
        const int last = *std::max_element(numbers->begin(), numbers->end());
        Layers layers(static_cast<std::size_t>(std::max(count, last + 1)), of_kind(others));
        for (const int number : *numbers)
            layers[static_cast<std::size_t>(number)] = of_kind(these);
        return layers;
    }
    return std::nullopt;
}

// A block a layer, each with an object about its attention.
std::optional<Layers> blocks(const Fields& config) {
    if (!config.is_list("block_configs")) return std::nullopt;
    Layers layers;
    for (const Fields& block : config.objects("block_configs")) {
        const auto attention = block.object("attention");
        const bool none = !attention || attention->boolean("no_op").value_or(false) ||
                          attention->boolean("replace_with_linear").value_or(false);
        layers.push_back(of_kind(none ? LayerKind::passed : LayerKind::full));
    }
    return layers.empty() ? std::nullopt : std::optional(layers);
}

// Every period-th layer sees all keys: the type's own period, or the file's.
struct Alternation {
    LayerKind others = LayerKind::full;
    int period = 0;
    int first = 0;
};

Alternation alternation_of(const Fields& config, const ModelType& type) {
    Alternation found{type.others, type.period, type.first};
    const auto take = [&](std::string_view field, LayerKind others, bool last) {
        if (!config.is_number(field)) return;
        found.period = *config.integer(field, 0, kMaxLayers);
        if (type.period == 0) found.others = others;
        if (last || type.period == 0) found.first = last ? found.period - 1 : 0;
    };
    take("sliding_window_pattern", LayerKind::sliding, true);
    take("_sliding_window_pattern", LayerKind::sliding, true);
    take("full_attention_interval", LayerKind::passed, true);
    take("no_rope_layer_interval", LayerKind::full, true);
    take("global_attn_every_n_layers", LayerKind::sliding, type.first == type.period - 1);
    take("attn_layer_period", LayerKind::passed, false);
    if (config.is_number("attn_layer_offset")) {
        found.first = *config.integer("attn_layer_offset", 0, kMaxLayers);
    }
    return found;
}

Layers alternating(const Alternation& alternation, int count) {
    Layers layers;
    const int length = count > 0 ? count : alternation.period;
    for (int i = 0; i < length; ++i) {
        const bool full = i % alternation.period == alternation.first;
        layers.push_back(of_kind(full ? LayerKind::full : alternation.others));
    }
    return layers;
}

// [[["global", "local"], 12]]: each list of names so many times.
std::optional<Layers> repeated_lists(const Fields& config) {
    const auto lists = config.repeated_texts("attention_types");
    if (!lists) return std::nullopt;
    Layers layers;
    for (const auto& [list, times] : *lists) {
        for (int i = 0; i < times; ++i) {
            for (const std::string& name : list)
                layers.push_back(named(name));
        }
    }
    return layers.empty() ? std::nullopt : std::optional(layers);
}

std::optional<Layers> listed(const Fields& config, int count) {
    using enum LayerKind;
    if (auto layers = listed_names(config, count)) return layers;
    if (auto layers = numbered(config)) return layers;
    if (auto layers = repeated_lists(config)) return layers;
    if (auto layers = blocks(config)) return layers;
    if (auto layers = indexed(config, count)) return layers;
    if (auto layers = lettered(config, "hybrid_override_pattern", 0, "M-E*",
                               {passed, passed, passed, full})) {
        return layers;
    }
    return lettered(config, "sliding_window_pattern", count, "LG", {sliding, full});
}

}  // namespace

std::optional<std::vector<int>> window_of(const Fields& config, const ModelType& type) {
    // A list of layers asks as well.
    const bool silence = !type.windows_are_asked || config.is_list("layer_types");
    const bool used = config.boolean("use_sliding_window").value_or(silence);
    if (!used) return std::nullopt;
    std::vector<std::string_view> names = {"sliding_window", "attention_window_size",
                                           "local_attention", "sliding_window_size"};
    if (type.period != 0) names.push_back("window_size");
    std::optional<std::vector<int>> window;
    bool said = false;
    for (const std::string_view name : names) {
        said = said || config.is_null(name);
        // Some write -1 for none.
        if (!window) window = config.integers(name, -1, kMaxSize, 0);
    }
    if (!window && config.is_object("attn_config")) {
        window = config.object("attn_config")->integers("sliding_window_size", -1, kMaxSize, 0);
    }
    if (!window && !said && type.window != 0) window = std::vector<int>{type.window};
    if (!window || *std::max_element(window->begin(), window->end()) <= 0) return std::nullopt;
    if (type.half_windows) {
        for (int& keys : *window)
            keys /= 2;
    }
    return window;
}

LayerKinds layer_kinds(const Fields& config, const ModelType& type) {
    const int count = layer_count(config, type);
    const auto window = window_of(config, type);
    LayerKinds result;
    result.counted = count > 0;
    if (auto layers = listed(config, count)) {
        result.layers = std::move(*layers);
        result.counted = true;
        const auto is = [](LayerKind kind) {
            return [kind](const KindOfLayer& each) { return each.kind == kind; };
        };
        for (KindOfLayer& layer : result.layers) {
            // A name that does not say what it sees, of a type whose layers all have a window.
            if (type.windows_everywhere && window && layer.name == "attention")
                layer = of_kind(LayerKind::sliding);
        }
        if (!window &&
            std::any_of(result.layers.begin(), result.layers.end(), is(LayerKind::sliding))) {
            throw Error(ErrorCode::invalid_argument,
                        config.file() + " has layers of sliding_attention, and no sliding_window");
        }
        return result;
    }
    const Alternation alternation = alternation_of(config, type);
    const bool alternates =
        alternation.period > 0 && alternation.others != LayerKind::full &&
        (alternation.others != LayerKind::sliding || (window && window->size() == 1));
    if (alternates) {
        result.layers = alternating(alternation, count);
        if (!type.windows_everywhere) return result;
    } else {
        result.layers.assign(static_cast<std::size_t>(std::max(count, 1)),
                             of_kind(LayerKind::full));
    }
    if (type.crosses) {
        result.layers.push_back(of_kind(LayerKind::cross));
        result.counted = false;
    }
    if (!window) return result;
    const auto windowed = [&](std::size_t layer) {
        if (window->size() > 1) return (*window)[std::min(layer, window->size() - 1)] > 0;
        return true;
    };
    const bool all_full =
        std::all_of(result.layers.begin(), result.layers.end(),
                    [](const KindOfLayer& each) { return each.kind == LayerKind::full; });
    if (type.windows_everywhere || window->size() > 1) {
        for (std::size_t i = 0; i < result.layers.size(); ++i) {
            KindOfLayer& layer = result.layers[i];
            if (layer.kind == LayerKind::full && windowed(i)) layer = of_kind(LayerKind::sliding);
        }
    } else if (const auto from = config.integer("max_window_layers", 0, kMaxSize);
               all_full && from && count > 0) {
        for (int i = *from; i < count; ++i)
            result.layers[static_cast<std::size_t>(i)] = of_kind(LayerKind::sliding);
    } else if (all_full) {
        result.layers = {of_kind(LayerKind::full), of_kind(LayerKind::sliding)};
        result.counted = false;
        result.windows_of_some = true;
    }
    return result;
}

}  // namespace jitney::policy
