// Twin of kernel_sources/common/stmatrix.cuh.
#pragma once

#include "common/shared.cuh"
#include "tests/emulator/twins/tensor_core.hpp"

namespace jitney {

JITNEY_DEVICE void stmatrix_x4(SharedAddress row, unsigned m0, unsigned m1, unsigned m2,
                               unsigned m3, emulator::Where where = emulator::Where::here()) {
    const unsigned matrices[4] = {m0, m1, m2, m3};
    emulator::store_matrices("stmatrix", matrices, row, false, where);
}

JITNEY_DEVICE void stmatrix_x4_transposed(SharedAddress row, unsigned m0, unsigned m1, unsigned m2,
                                          unsigned m3,
                                          emulator::Where where = emulator::Where::here()) {
    const unsigned matrices[4] = {m0, m1, m2, m3};
    emulator::store_matrices("stmatrix.trans", matrices, row, true, where);
}

}  // namespace jitney
