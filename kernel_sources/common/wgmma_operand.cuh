// How wgmma is told where a matrix lies in shared memory. Matrices lie in panels of 128-byte rows,
// each row's 16-byte chunks permuted by the number of the row modulo 8 (the copy engine's swizzle
// of 128 bytes); a panel begins at a multiple of 1024 bytes.
//
// A matrix whose rows run along k (K-major: Q and K of attention) has 64 16-bit elements of k a
// row, and a panel for every 64 of k. One whose rows run along m or n (V) has 64 of those a row, a
// row for every k, and a panel for every 64 of m or n.
#pragma once

#include "common/shared.cuh"

namespace jitney {

using WgmmaOperand = unsigned long long;

constexpr int kPanelRowBytes = 128;
constexpr int kPanelColumns = 64;  // of 16 bits

// `panel_bytes` is the distance between panels; a K-major operand of one step has one panel only.
JITNEY_DEVICE WgmmaOperand wgmma_operand(SharedAddress matrix, int panel_bytes) {
    constexpr unsigned long long swizzle_128 = 1ull << 62;
    constexpr unsigned long long eight_rows = 8 * kPanelRowBytes / 16;
    return swizzle_128 | eight_rows << 32 |
           static_cast<unsigned long long>(panel_bytes / 16) << 16 | (matrix & 0x3ffffu) >> 4;
}

// The operand `bytes` further.
JITNEY_DEVICE WgmmaOperand wgmma_operand_at(WgmmaOperand operand, int bytes) {
    return operand + static_cast<unsigned>(bytes / 16);
}

// Where step number `step` of 16 elements of k begins, in bytes from the matrix's begin.
constexpr int k_major_step(int step, int panel_bytes) {
    return step / 4 * panel_bytes + step % 4 * 32;
}
constexpr int n_major_step(int step) {
    return step * 16 * kPanelRowBytes;
}

}  // namespace jitney
