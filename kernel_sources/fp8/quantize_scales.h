// What the casts that make a scale for each part of a matrix are launched with; shared by host and
// device.
#pragma once

#include "fp8/quantize_params.h"

namespace jitney {

// What shares a scale: the same numbers as the public jitney::Fp8Granularity.
enum Fp8ScaleOf : int {
    kScaleOfTensor = 0,
    kScaleOfRow = 1,
    kScaleOfGroup = 2,
    kScaleOfBlock = 3,
};

// Columns that share a scale, in groups of one row and in blocks of as many rows.
constexpr int kFp8ScaleCols = 128;
// Lanes that a row of a group lies in.
constexpr int kFp8ScaleLanes = kFp8ScaleCols / kFp8ThreadCols;

// Threads of a block: for groups any number will do; what shares a scale otherwise is one block's.
constexpr int fp8_group_threads(int scale_rows) {
    return scale_rows == 1 ? 256 : 512;
}
// Rows of a block's tile, which is as wide as a group.
constexpr int fp8_group_tile_rows(int scale_rows) {
    return fp8_group_threads(scale_rows) / kFp8ScaleLanes * kFp8ThreadRows;
}
// Of the warps' maxima.
constexpr int fp8_group_shared_bytes(int scale_rows) {
    return scale_rows == 1 ? 0 : fp8_group_threads(scale_rows) / 32 * 4;
}

// Rows of cols elements. Strides count elements: from row to row, and of the scales from one to the
// next down and across.
struct Fp8ScalesParams {
    const void* x;
    unsigned char* codes;
    float* scales;
    long long x_stride;
    long long codes_stride;
    long long scales_down;
    long long scales_across;
    long long rows;
    long long cols;
    float largest;     // number of the codes' format
    int power_of_two;  // scales are powers of two
    // Of groups and blocks: tiles side by side; whether 16 bytes of x, 8 codes, may be moved at
    // once.
    int tiles_across;
    int wide_x;
    int wide_codes;
};

}  // namespace jitney
