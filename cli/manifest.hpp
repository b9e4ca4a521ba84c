// A list of specializations in a file: one a line; blank lines, and what follows a '#', are left
// out.
#pragma once

#include <string>
#include <vector>

namespace jitney::cli {

// Their texts, checked. Throws Error that names the line.
std::vector<std::string> read_manifest(const std::string& path);

}  // namespace jitney::cli
