#include "policy/models/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "jitney/error.hpp"

namespace jitney::policy {

std::string told(Names names) {
    return fmt::format("{} (or {})", names.front(), fmt::join(names.subspan(1), ", "));
}

std::optional<std::vector<int>> values_of(const Fields& config, Names names, int maximum) {
    std::optional<std::vector<int>> found;
    std::string_view first;
    for (const std::string_view name : names) {
        const auto values = config.integers(name, 1, maximum);
        if (!values) continue;
        if (!found) {
            found = values;
            first = name;
        } else if (*values != *found) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("{} of {} is {}, and {} is {}: both name the same, so one of "
                                    "them has to go",
                                    config.path_of(first), config.file(), config.shown(first),
                                    config.path_of(name), config.shown(name)));
        }
    }
    return found;
}

std::optional<int> value_of(const Fields& config, Names names, int maximum) {
    const auto values = values_of(config, names, maximum);
    if (!values) return std::nullopt;
    if (values->size() > 1) {
        const auto name = std::find_if(names.begin(), names.end(),
                                       [&config](auto each) { return config.has(each); });
        config.refuse_value(*name, fmt::format("a whole number from 1 to {}", maximum));
    }
    return values->front();
}

bool says_null(const Fields& config, Names names) {
    return std::any_of(names.begin(), names.end(),
                       [&config](std::string_view name) { return config.is_null(name); });
}

int layer_count(const Fields& config, const ModelType& type) {
    for (const std::string_view name : kLayersNames) {
        constexpr int kMaxLayers = 100000;
        // The last of the names may be that of a list.
        if (name == kLayersNames.back() ? config.is_number(name) : config.has(name))
            return *config.integer(name, 0, kMaxLayers);
    }
    return type.sizes.layers;
}

}  // namespace jitney::policy
