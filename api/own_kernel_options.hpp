// Which of NVRTC's options a caller's kernel may have.
#pragma once

#include <string>
#include <vector>

namespace jitney {

// Throws Error (invalid_argument) for one that it may not have, and says why.
void check_options(const std::vector<std::string>& options, const std::string& file);

}  // namespace jitney
