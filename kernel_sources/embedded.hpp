// The device sources as the library carries them. The table is made when the library is built, of
// every .cuh and .h file of this folder.
#pragma once

#include <span>
#include <string_view>

namespace jitney::kernel_sources {

struct EmbeddedSource {
    std::string_view name;  // the path from this folder on: "common/mma.cuh"
    std::string_view text;
};

// Sorted by name.
std::span<const EmbeddedSource> embedded_sources() noexcept;

}  // namespace jitney::kernel_sources
