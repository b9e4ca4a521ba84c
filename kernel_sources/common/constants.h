// Values of the constants that specialization texts spell out, shared by host and device.
#pragma once

namespace jitney {

// Element formats; the numbers are those of jitney::DType.
enum Format : int {
    kFp32 = 0,
    kFp16 = 1,
    kBf16 = 2,
    kFp8E4m3 = 3,
    kFp8E5m2 = 4,
};

// Where keys and values lie.
enum KvSource : int {
    kDenseKv = 0,  // one tensor, [batch, length, kv_heads, head_dim] by strides
    kPagedKv = 1,  // a pool of pages and a table of page numbers
};

// How queries are divided into tiles.
enum QuerySchedule : int {
    kDenseQueries = 0,   // every request has q_len
    kPackedQueries = 1,  // requests of any length one behind the other, and a map of tiles
};

// Which elements rotary embedding pairs: the same numbers as the public jitney::RotaryStyle, whose
// name this one leaves alone.
enum RotaryPairing : int {
    kInterleaved = 0,  // (2i, 2i + 1)
    kHalfSplit = 1,    // (i, i + rotary_dim / 2)
};

// Which codes fp8_quantize writes.
enum Fp8Codes : int {
    kNoCodes = 0,  // the largest magnitude alone is wanted
    kRowCodes = 1,
    kTransposedCodes = 2,
    kBothCodes = 3,  // bits of the two
};

}  // namespace jitney
