// Whether kernels tell the machine of every access to memory: they are compiled with the calls
// that ThreadSanitizer has a compiler insert, and the machine answers them (hooks.cpp). Under
// AddressSanitizer, which excludes that, its own checks stand in.
#pragma once

#include "tests/emulator/machine/sanitizer.hpp"

namespace jitney::emulator {

constexpr bool kInstrumented = !sanitizer::kOn;

}  // namespace jitney::emulator
