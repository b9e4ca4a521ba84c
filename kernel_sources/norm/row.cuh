// A row of a matrix and the threads that share it.
#pragma once

#include "common/nan_max.cuh"
#include "common/vector.cuh"
#include "common/warp.cuh"
#include "norm/row_shape.h"

namespace jitney {

constexpr int ceil_power_of_two(int count) {
    int power = 1;
    while (power < count)
        power *= 2;
    return power;
}

// C has the threads of a row, the elements that are moved at once, and the vectors of so many
// elements that a thread holds; 0: it holds none, and reads them anew for each pass.
template <class C>
struct RowThreads {
    static constexpr int kThreads = C::threads;
    static constexpr int kWidth = C::width;
    static constexpr bool kHolds = C::vectors > 0;
    static constexpr int kVectors = kHolds ? C::vectors : 1;
    static constexpr int kRows = rows_a_block(kThreads);
    static constexpr int kWarps = kThreads / kWarpSize;

    // The thread's number among those of its row, and the row's in the block.
    int thread;
    int row;
    int turn = 0;  // which of the two places of a reduction comes next

    JITNEY_DEVICE RowThreads()
        : thread(static_cast<int>(threadIdx.x) % kThreads),
          row(static_cast<int>(threadIdx.x) / kThreads) {}

    // body(i, vector) for the thread's vectors among the `count` of a row; `i` is its place where
    // they are held.
    template <class Body>
    JITNEY_DEVICE void for_each(int count, const Body& body) const {
        if constexpr (kHolds) {
#pragma unroll
            for (int i = 0; i < kVectors; ++i) {
                const int vector = i * kThreads + thread;
                if (vector < count) body(i, vector);
            }
        } else {
            for (int vector = thread; vector < count; vector += kThreads)
                body(0, vector);
        }
    }

    // Merges the values of a row's threads, none of which is below 0 where that counts; each of
    // them gets the result. All threads of the block come here.
    template <class Merge>
    JITNEY_DEVICE float over_row(float value, const Merge& merge) {
        constexpr int lanes = kThreads < kWarpSize ? kThreads : kWarpSize;
#pragma unroll
        for (int step = lanes / 2; step > 0; step /= 2)
            value = merge(value, __shfl_xor_sync(kAllLanes, value, step));
        if constexpr (kThreads > kWarpSize) {
            // The places of this turn are read by nobody any more: the barrier of the turn between
            // has come since.
            float* const warps = reinterpret_cast<float*>(shared_memory()) + turn * kWarps;
            turn ^= 1;
            if (thread % kWarpSize == 0) warps[thread / kWarpSize] = value;
            __syncthreads();
            // A lane for each warp's part, as often as they fit.
            constexpr int parts = ceil_power_of_two(kWarps);
            const int part = thread % parts;
            value = part < kWarps ? warps[part] : 0.0f;
#pragma unroll
            for (int step = parts / 2; step > 0; step /= 2)
                value = merge(value, __shfl_xor_sync(kAllLanes, value, step));
        }
        return value;
    }

    JITNEY_DEVICE float sum(float value) {
        return over_row(value, [](float a, float b) { return a + b; });
    }
    // Of magnitudes; NaN where one is.
    JITNEY_DEVICE float largest(float value) {
        return over_row(value, [](float a, float b) { return max_or_nan(a, b); });
    }
};

// Values that a thread, and nobody else, keeps in shared memory until its row's scale is known:
// registers for them would be those of other blocks, whose loads are under way.
template <class C>
struct KeptValues {
    static constexpr int kWidth = C::width;
    static constexpr int kChunk = kWidth < 4 ? kWidth : 4;  // values that are moved at once

    JITNEY_DEVICE static float* place(int i, int j) {
        const int chunk = i * (kWidth / kChunk) + j / kChunk;
        return reinterpret_cast<float*>(shared_memory() + kRowValuesOffset) +
               (chunk * row_block_threads(C::threads) + static_cast<int>(threadIdx.x)) * kChunk;
    }
    JITNEY_DEVICE static void put(int i, const float (&y)[kWidth]) {
#pragma unroll
        for (int j = 0; j < kWidth; j += kChunk) {
            Vector<float, kChunk> chunk;
#pragma unroll
            for (int k = 0; k < kChunk; ++k)
                chunk.items[k] = y[j + k];
            store_vector(place(i, j), chunk);
        }
    }
    JITNEY_DEVICE static void get(int i, float (&y)[kWidth]) {
#pragma unroll
        for (int j = 0; j < kWidth; j += kChunk) {
            const auto chunk = load_vector<kChunk>(place(i, j));
#pragma unroll
            for (int k = 0; k < kChunk; ++k)
                y[j + k] = chunk.items[k];
        }
    }
};

}  // namespace jitney
