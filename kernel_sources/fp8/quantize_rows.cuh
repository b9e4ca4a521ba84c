// fp8_quantize_rows: rows as codes of E4M3 or E5M2, each with a scale that its own largest
// magnitude makes. A row is read once where its threads can hold it.
#pragma once

#include "common/element.cuh"
#include "common/grid_dependency.cuh"
#include "fp8/codes.cuh"
#include "fp8/quantize_scales.h"
#include "fp8/scale.h"
#include "norm/row.cuh"

namespace jitney {

template <class C>
struct Fp8QuantizeRows {
    using T = Element<C::format>;
    static constexpr int kWidth = C::width;
    using Elements = Vector<T, kWidth>;
    using Threads = RowThreads<C>;

    const Fp8ScalesParams& params;
    Threads threads;
    long long row = 0;
    int count = 0;  // vectors; none past the last row

    JITNEY_DEVICE explicit Fp8QuantizeRows(const Fp8ScalesParams& p) : params(p) {}

    JITNEY_DEVICE Elements load(int vector) const {
        return load_vector<kWidth>(static_cast<const T*>(params.x) + row * params.x_stride +
                                   vector * kWidth);
    }
    JITNEY_DEVICE static float largest_of(const Elements& x, float largest) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            largest = max_or_nan(largest, fabsf(x.items[j].value()));
        return largest;
    }
    // Of the row, of which this thread has seen so much; its inverse is the row's scale.
    JITNEY_DEVICE float multiplier_of(float largest) {
        const float multiplier = dynamic_fp8_multiplier(threads.largest(largest), params.largest,
                                                        params.power_of_two != 0);
        if (threads.thread == 0 && row < params.rows)
            params.scales[row * params.scales_down] = fp8_scale(multiplier);
        return multiplier;
    }
    JITNEY_DEVICE void store(int vector, const Elements& x, float multiplier) const {
        float y[kWidth];
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            y[j] = x.items[j].value();
        store_vector(params.codes + row * params.codes_stride + vector * kWidth,
                     fp8_codes_of<C::out>(y, multiplier));
    }

    JITNEY_DEVICE void run() {
        release_next_grid();
        wait_for_previous_grid();
        const long long first = static_cast<long long>(blockIdx.x) * Threads::kRows;
        if constexpr (Threads::kVectors > 2) {
            // A loop that goes round once, as the grid has a block for all rows: without it the
            // compiler lets the loads of several vectors wait for each other.
            const long long step = static_cast<long long>(gridDim.x) * Threads::kRows;
            for (long long rows = first; rows < params.rows; rows += step)
                do_row(rows + threads.row);
        } else {
            do_row(first + threads.row);
        }
    }

  private:
    JITNEY_DEVICE void do_row(long long number) {
        row = number;
        count = row < params.rows ? static_cast<int>(params.cols) / kWidth : 0;
        if constexpr (Threads::kHolds) {
            // All loads are under way before the first of them is waited for.
            Elements x[Threads::kVectors];
            threads.for_each(count, [&](int i, int vector) { x[i] = load(vector); });
            float largest = 0.0f;
            threads.for_each(count, [&](int i, int) { largest = largest_of(x[i], largest); });
            const float multiplier = multiplier_of(largest);
            threads.for_each(count, [&](int i, int vector) { store(vector, x[i], multiplier); });
        } else {
            float largest = 0.0f;
            threads.for_each(count,
                             [&](int, int vector) { largest = largest_of(load(vector), largest); });
            const float multiplier = multiplier_of(largest);
            threads.for_each(count,
                             [&](int, int vector) { store(vector, load(vector), multiplier); });
        }
    }
};

template <class C>
__global__ void __launch_bounds__(row_block_threads(C::threads), C::vectors == 0 ? 1 : 0)
    fp8_quantize_rows(const __grid_constant__ Fp8ScalesParams params) {
    Fp8QuantizeRows<C>(params).run();
}

}  // namespace jitney
