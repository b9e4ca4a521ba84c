// A kernel of somebody's own in a manifest: one line, `own ` and a JSON object.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/kernel.hpp"

namespace jitney::cli {

// The object that follows `own` in such a line; nothing where the line is none.
std::optional<std::string_view> own_kernel_in(std::string_view line);

// The kernel, for each arch that the object names. Texts that it names instead of holding them are
// read from `directory`. Throws Error.
std::vector<KernelTarget> read_own_kernel(std::string_view json, const std::string& directory);

}  // namespace jitney::cli
