// Whether this machine has the compiler that these tests need.
#pragma once

namespace jitney::tests {

// Where it is missing, that is a failure in a build that found one when it was configured
// (JITNEY_EXPECT_NVRTC), and else said, so that ctest counts the run as skipped.
bool has_nvrtc();

}  // namespace jitney::tests
