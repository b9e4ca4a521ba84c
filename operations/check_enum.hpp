// Values of enumerations, which a caller can make of any number. For bodies alone.
#pragma once

#include <initializer_list>
#include <string>

#include "operations/refuse.hpp"

namespace jitney::checks {

template <class Enum>
struct Enumerator {
    Enum value;
    const char* name;
};

// "style is 9; it must be interleaved (0) or half_split (1)"
template <class Enum>
void check_enum(const char* what, Enum value, std::initializer_list<Enumerator<Enum>> all) {
    for (const Enumerator<Enum>& each : all) {
        if (each.value == value) return;
    }
    std::string known;
    std::size_t left = all.size();
    for (const Enumerator<Enum>& each : all) {
        known += fmt::format("{} ({})", each.name, static_cast<int>(each.value));
        --left;
        known += left > 1 ? ", " : left == 1 ? " or " : "";
    }
    refuse("{} is {}; it must be {}", what, static_cast<int>(value), known);
}

}  // namespace jitney::checks
