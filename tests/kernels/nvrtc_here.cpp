#include "tests/kernels/nvrtc_here.hpp"

#include <doctest/doctest.h>

#include "runtime/nvrtc.hpp"

namespace jitney::tests {

bool has_nvrtc() {
    if (runtime::nvrtc_location()) return true;
    if (JITNEY_EXPECT_NVRTC != 0) {
        FAIL(
            "NVRTC is not found, and this build expects it: name it in JITNEY_LIBNVRTC, or "
            "configure with -DJITNEY_EXPECT_NVRTC=OFF");
    }
    MESSAGE("skipped: NVRTC is not on this machine");
    return false;
}

}  // namespace jitney::tests
