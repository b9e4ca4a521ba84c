// How a kernel of rows spreads them over threads; shared by host and device.
#pragma once

namespace jitney {

// Weights of a norm; formats have the numbers of a Format.
enum NormWeight : int {
    kNoWeight = 3,
};

// What a kernel of rows writes.
enum RowResult : int {
    kPlainResult = 0,     // elements of the input's format
    kScaledCodes = 1,     // E4M3 codes of the values times a multiplier that is given
    kRowScaledCodes = 2,  // E4M3 codes and, for each row, the scale that its largest value made
};

// Threads of a block whose rows take fewer each.
constexpr int kRowBlockThreads = 128;

// Rows of a block, of so many threads each: a power of two up to 32, or some warps.
constexpr int rows_a_block(int threads) {
    return threads > 32 || kRowBlockThreads < threads ? 1 : kRowBlockThreads / threads;
}
constexpr int row_block_threads(int threads) {
    return threads * rows_a_block(threads);
}

// Shared memory of a block. In front two words a warp, where threads that share a row leave their
// part in turns in the one and the other; behind them, where each row makes a scale of its own, the
// values that a thread holds until it is known, as fp32.
constexpr int kRowValuesOffset = 256;
constexpr int row_shared_bytes(int threads, int vectors, int width, int result) {
    return result == kRowScaledCodes && vectors != 0
               ? kRowValuesOffset + row_block_threads(threads) * vectors * width * 4
               : (threads > 32 ? 2 * (threads / 32) * 4 : 0);
}

}  // namespace jitney
