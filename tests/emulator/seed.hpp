// The seed of a test run.
#pragma once

#include "tests/support/run_seed.hpp"

namespace jitney::emulator {

using tests::run_seed;

}  // namespace jitney::emulator
