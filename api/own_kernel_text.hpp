// The checks of a caller's kernel that need no compiler.
#pragma once

#include <string>
#include <vector>

#include "jitney/kernel.hpp"

namespace jitney {

// The code in the one form in which it is compiled and kept: lines end in '\n', constants and
// headers stand in the order of their names. Throws Error (invalid_argument) where it can't be
// meant, or where equal codes would not be equal machine code on every machine and every day.
KernelCode checked(const KernelCode& code);

// The names that the texts of a checked code include, each once.
std::vector<std::string> included_names(const KernelCode& code);

}  // namespace jitney
