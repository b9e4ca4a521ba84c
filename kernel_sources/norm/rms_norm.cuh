// rms_norm: rows divided by the root of their mean square, or, with their mean taken off first,
// layer_norm; of x, or of x + residual, whose sum is written as well. A row is read once and held
// in registers where it fits.
#pragma once

#include "common/element.cuh"
#include "common/grid_dependency.cuh"
#include "norm/rms_norm.h"
#include "norm/row.cuh"
#include "norm/row_result.cuh"

namespace jitney {

template <class C>
struct RmsNorm {
    using T = Element<C::format>;
    static constexpr bool kAdds = C::residual != 0;
    static constexpr bool kHasWeight = C::weight != kNoWeight;
    using W = Element<kHasWeight ? C::weight : C::format>;
    static constexpr int kWidth = C::width;
    using Elements = Vector<T, kWidth>;
    using Weights = Vector<W, kWidth>;
    using Threads = RowThreads<C>;
    static constexpr bool kHolds = Threads::kHolds;
    static constexpr bool kScalesRows = C::result == kRowScaledCodes;
    // The weights of a single vector come with it, and so does its residual: more would take the
    // registers of other blocks.
    static constexpr bool kSingle = kHolds && Threads::kVectors == 1;
    static constexpr bool kAsks = kHolds && (!kAdds || kSingle);
    static constexpr bool kHoldsWeights = kSingle && kHasWeight && sizeof(W) == 2;
    // Whether 32 registers are enough.
    static constexpr bool kIsLean = Threads::kVectors <= 2 && C::center == 0 && C::bias == 0 &&
                                    (!kAdds || (sizeof(W) == 2 && (kSingle || !kScalesRows)));
    static constexpr int kBlocks = kHolds && kIsLean ? 2048 / row_block_threads(C::threads) : 0;

    const RmsNormParams& params;
    Threads threads;
    long long row = 0;
    int count = 0;  // vectors of the row; 0 past the last row
    Elements held[Threads::kVectors];
    Elements added;
    Weights weight;

    JITNEY_DEVICE explicit RmsNorm(const RmsNormParams& p) : params(p) {}

    template <class Item>
    JITNEY_DEVICE Item* at(Item* tensor, long long stride, int vector) const {
        return tensor + row * stride + static_cast<long long>(vector) * kWidth;
    }
    JITNEY_DEVICE Elements load(const void* tensor, long long stride, int vector) const {
        return load_vector<kWidth>(at(static_cast<const T*>(tensor), stride, vector));
    }
    JITNEY_DEVICE Weights weights_at(const void* tensor, int vector) const {
        return load_vector<kWidth>(static_cast<const W*>(tensor) +
                                   static_cast<long long>(vector) * kWidth);
    }

    // x + residual as it is written.
    JITNEY_DEVICE Elements sum_of(const Elements& x, const Elements& residual, int vector) const {
        float sum[kWidth];
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            sum[j] = x.items[j].value() + residual.items[j].value();
        const auto rounded = elements_of<T>(sum);
        store_vector(at(static_cast<T*>(params.sum), params.sum_stride, vector), rounded);
        return rounded;
    }

    // What is normalised, in the first pass and once more.
    JITNEY_DEVICE Elements first(int i, int vector) const {
        if constexpr (kAsks && !kAdds) {
            return held[i];
        } else if constexpr (kAsks) {
            return sum_of(held[i], added, vector);
        } else if constexpr (kAdds) {
            return sum_of(load(params.x, params.x_stride, vector),
                          load(params.residual, params.residual_stride, vector), vector);
        } else {
            return load(params.x, params.x_stride, vector);
        }
    }
    JITNEY_DEVICE Elements again(int i, int vector) const {
        if constexpr (kHolds) {
            return held[i];
        } else if constexpr (kAdds) {
            return load(params.sum, params.sum_stride, vector);
        } else {
            return load(params.x, params.x_stride, vector);
        }
    }

    // All that is held is on its way before anything waits for it.
    JITNEY_DEVICE void ask() {
        if constexpr (kAsks) {
            threads.for_each(count, [&](int i, int vector) {
                held[i] = load(params.x, params.x_stride, vector);
                if constexpr (kAdds) added = load(params.residual, params.residual_stride, vector);
            });
        }
        if constexpr (kHoldsWeights) {
            threads.for_each(count,
                             [&](int, int vector) { weight = weights_at(params.weight, vector); });
        }
    }

    JITNEY_DEVICE float first_sum() {
        float sum = 0.0f;
        threads.for_each(count, [&](int i, int vector) {
            const Elements x = first(i, vector);
            if constexpr (kHolds) held[i] = x;
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                const float value = x.items[j].value();
                sum += C::center != 0 ? value : value * value;
            }
        });
        return sum;
    }

    JITNEY_DEVICE float squares_about(float mean) const {
        float sum = 0.0f;
        threads.for_each(count, [&](int i, int vector) {
            const Elements x = again(i, vector);
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                const float off = x.items[j].value() - mean;
                sum += off * off;
            }
        });
        return sum;
    }

    JITNEY_DEVICE void values(int i, int vector, float mean, float factor,
                              float (&y)[kWidth]) const {
        const Elements x = again(i, vector);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            const float value = x.items[j].value();
            y[j] = (C::center != 0 ? value - mean : value) * factor;
        }
        if constexpr (kHasWeight) {
            const Weights by_all = kHoldsWeights ? weight : weights_at(params.weight, vector);
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                const float by = by_all.items[j].value();
                y[j] = C::one_plus != 0 ? __fmaf_rn(y[j], by, y[j]) : y[j] * by;
            }
        }
        if constexpr (C::bias != 0) {
            const Weights bias = weights_at(params.bias, vector);
#pragma unroll
            for (int j = 0; j < kWidth; ++j)
                y[j] += bias.items[j].value();
        }
    }

    JITNEY_DEVICE void store(int vector, const float (&y)[kWidth], float multiplier) const {
        if constexpr (C::result == kPlainResult) {
            store_vector(at(static_cast<T*>(params.out), params.out_stride, vector),
                         elements_of<T>(y));
        } else {
            store_vector(at(static_cast<unsigned char*>(params.out), params.out_stride, vector),
                         fp8_codes_of<kFp8E4m3>(y, multiplier));
        }
    }

    // Of codes: the one that is given, or what the row's own values make.
    JITNEY_DEVICE float multiplier_of_row(float mean, float factor) {
        if constexpr (C::result == kPlainResult) {
            return 1.0f;
        } else if constexpr (!kScalesRows) {
            return *params.multiplier;
        } else {
            float largest = 0.0f;
            threads.for_each(count, [&](int i, int vector) {
                float y[kWidth];
                values(i, vector, mean, factor, y);
                largest = max_or_nan(largest, largest_magnitude(y));
                if constexpr (kHolds) KeptValues<C>::put(i, y);
            });
            const float multiplier = dynamic_fp8_multiplier(threads.largest(largest), kE4m3Largest);
            if (threads.thread == 0 && count != 0) params.scale[row] = fp8_scale(multiplier);
            return multiplier;
        }
    }

    JITNEY_DEVICE void do_row() {
        ask();
        const float size = static_cast<float>(params.d);
        float mean = 0.0f;
        float squares = threads.sum(first_sum());
        if constexpr (C::center != 0) {
            mean = squares / size;
            squares = threads.sum(squares_about(mean));
        }
        const float factor = rsqrtf(squares / size + params.eps);
        const float multiplier = multiplier_of_row(mean, factor);
        threads.for_each(count, [&](int i, int vector) {
            float y[kWidth];
            if constexpr (kScalesRows && kHolds) {
                KeptValues<C>::get(i, y);
            } else {
                values(i, vector, mean, factor, y);
            }
            store(vector, y, multiplier);
        });
    }

    // A loop that goes round once, as the grid has a block for all rows: without it the compiler
    // takes half as many registers again.
    JITNEY_DEVICE void run() {
        release_next_grid();
        wait_for_previous_grid();
        const long long step = static_cast<long long>(gridDim.x) * Threads::kRows;
        for (long long first = static_cast<long long>(blockIdx.x) * Threads::kRows;
             first < params.rows; first += step) {
            row = first + threads.row;
            count = row < params.rows ? params.d / kWidth : 0;
            do_row();
        }
    }
};

template <class C>
__global__ void __launch_bounds__(row_block_threads(C::threads), RmsNorm<C>::kBlocks)
    rms_norm(const __grid_constant__ RmsNormParams params) {
    RmsNorm<C>(params).run();
}

}  // namespace jitney
