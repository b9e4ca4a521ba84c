// The kernels of tests/wrappers, by the names that kernels_of() has.
#pragma once

#include <vector>

#include "tests/emulator/machine/launch.hpp"

namespace jitney::toys {

using emulator::Kernel;

extern const std::vector<Kernel> wrapper_kernels;

}  // namespace jitney::toys
