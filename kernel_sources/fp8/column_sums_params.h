// What fp8_column_sums is launched with; shared by host and device.
#pragma once

namespace jitney {

// A block sums 64 columns: 8 threads side by side, of 8 columns each, in 32 rows of threads.
constexpr int kColumnSumsThreads = 256;
constexpr int kColumnSumsAcross = 8;
constexpr int kColumnSumsThreadCols = 8;
constexpr int kColumnSumsCols = kColumnSumsAcross * kColumnSumsThreadCols;
constexpr int kColumnSumsDown = kColumnSumsThreads / kColumnSumsAcross;
// A row of sums for every row of threads, and a flag.
constexpr int kColumnSumsSharedBytes = kColumnSumsDown * kColumnSumsCols * 4 + 16;

struct ColumnSumsParams {
    const void* x;  // [rows, cols]
    void* out;      // [cols]
    long long x_stride;
    long long rows;
    long long rows_a_split;
    int cols;
    int column_blocks;
    int splits;         // blocks that share the rows of 64 columns
    int wide;           // whether 16 bytes of x may be read at once
    float* parts;       // [splits, cols], where there are several
    unsigned* arrived;  // of each block of columns, zero between launches
};

}  // namespace jitney
