// The seed of a test run: fresh, unless JITNEY_TEST_SEED names one; printed at the start.
#pragma once

#include <cstdint>

namespace jitney::emulator {

std::uint64_t run_seed();

}  // namespace jitney::emulator
