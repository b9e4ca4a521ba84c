// Which embedded sources a translation unit includes, directly and through others.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernel_sources/embedded.hpp"

namespace jitney::runtime {

using kernel_sources::EmbeddedSource;

// Sorted by name. Throws Error (internal) where an include names no embedded source, or a header
// in angle brackets: there is no toolkit to take it from when kernels are compiled.
std::vector<EmbeddedSource> included_sources(std::string_view translation_unit,
                                             std::span<const EmbeddedSource> table);

}  // namespace jitney::runtime
