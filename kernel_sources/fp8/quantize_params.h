// What fp8_quantize is launched with; shared by host and device.
#pragma once

namespace jitney {

constexpr int kFp8QuantizeThreads = 256;
// What a thread handles: neighbouring elements of neighbouring rows.
constexpr int kFp8ThreadRows = 4;
constexpr int kFp8ThreadCols = 8;
// Where codes are transposed, the threads of a block stand in 32 rows of 8, so that its tile is 128
// rows of 64 elements.
constexpr int kFp8TransposeLog2Across = 3;
constexpr int kFp8TransposeRows = kFp8ThreadRows * (kFp8QuantizeThreads >> kFp8TransposeLog2Across);
constexpr int kFp8TransposeCols = kFp8ThreadCols << kFp8TransposeLog2Across;

constexpr int fp8_quantize_shared_bytes(bool transposes, bool amax) {
    return (transposes ? kFp8TransposeRows * kFp8TransposeCols : 0) +
           (amax ? kFp8QuantizeThreads / 32 * 4 : 0);
}

struct AmaxCounters;

// A matrix of `rows` rows of `cols` elements, the last of which may have fewer. Strides count
// elements from row to row.
struct Fp8QuantizeParams {
    const void* x;
    unsigned char* codes;
    unsigned char* transposed;  // [cols, rows]
    long long x_stride;
    long long codes_stride;
    long long transposed_stride;
    long long rows;
    long long cols;
    long long last_cols;  // elements of the last row
    int tiles;
    int tiles_across;
    int log2_across;  // threads of a block that stand side by side
    int backwards;    // the last tile comes first; not with amax
    // Whether 16 bytes of x, 8 codes, 16 codes of a transposed row may be moved at once.
    int wide_x;
    int wide_codes;
    int wide_transposed;
    const float* multiplier;  // null: 1
    int by_scale;             // what lies there is its inverse
    float* scale;             // null, or receives 1 / multiplier
    float* amax;              // null, or receives the largest |x|
    // Dynamic scaling, with amax: where it is not null it receives the multiplier that amax asks
    // for, in the format whose largest number is `largest`, and scale its inverse.
    float* new_multiplier;
    // Delayed scaling, with codes and amax: the row of a state whose multiplier `multiplier` is.
    // One of 0 has no history: x is cast by its own amax, and the row receives what that made, the
    // multiplier only where amax is usable. Else null.
    float* state;
    float largest;
    int power_of_two;  // of dynamic scaling: multipliers are rounded down to powers of two
    AmaxCounters* counters;
};

}  // namespace jitney
