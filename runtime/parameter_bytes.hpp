// What machine code tells of its kernels' parameters.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace jitney::runtime {

// How many bytes all parameters of a function have together, from the begin of their memory up to
// the end of the last; a first one that asks for more alignment than that begin has lies some bytes
// behind it. It is an attribute that the compiler leaves in the section .nv.info.FUNCTION of a
// cubin. Nothing where the bytes are no cubin or have no such section.
std::optional<std::size_t> parameter_bytes(std::string_view cubin, std::string_view function);

}  // namespace jitney::runtime
