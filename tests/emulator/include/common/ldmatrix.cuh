// Twin of kernel_sources/common/ldmatrix.cuh.
#pragma once

#include "common/shared.cuh"
#include "tests/emulator/twins/tensor_core.hpp"

namespace jitney {

JITNEY_DEVICE void ldmatrix_x4(unsigned (&matrices)[4], SharedAddress row,
                               emulator::Where where = emulator::Where::here()) {
    emulator::load_matrices("ldmatrix", matrices, row, false, where);
}

JITNEY_DEVICE void ldmatrix_x4_transposed(unsigned (&matrices)[4], SharedAddress row,
                                          emulator::Where where = emulator::Where::here()) {
    emulator::load_matrices("ldmatrix.trans", matrices, row, true, where);
}

}  // namespace jitney
