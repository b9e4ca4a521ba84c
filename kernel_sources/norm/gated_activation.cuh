// gated_activation: out = activation(gate) * up, element by element. Where each row makes a scale
// of its own, it is read once and its values are held in registers where they fit.
#pragma once

#include "common/element.cuh"
#include "common/grid_dependency.cuh"
#include "common/numeric.cuh"
#include "norm/gated_activation.h"
#include "norm/row.cuh"
#include "norm/row_result.cuh"

namespace jitney {

// 1 / (1 + e^-x)
JITNEY_DEVICE float logistic(float x) {
    return reciprocal_fast(1.0f + exp2_fast(-kLog2E * x));
}

template <int function>
JITNEY_DEVICE float gate_value(float x) {
    if constexpr (function == kSilu) {
        return x * logistic(x);
    } else if constexpr (function == kGelu) {
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    } else if constexpr (function == kGeluTanh) {
        // (1 + tanh(z)) / 2 is the logistic function of 2z.
        return x * logistic(x * (1.5957691216f + 0.0713548163f * (x * x)));
    } else {
        static_assert(function == kRelu2);
        return x <= 0.0f ? 0.0f : x * x;  // NaN stays NaN
    }
}

template <class C>
struct GatedActivation {
    using T = Element<C::format>;
    static constexpr int kWidth = C::width;
    using Elements = Vector<T, kWidth>;
    using Threads = RowThreads<C>;
    static constexpr bool kScalesRows = C::result == kRowScaledCodes;
    static constexpr bool kHoldsValues = Threads::kHolds && kScalesRows;
    static constexpr int kPieceVectors = Threads::kThreads * Threads::kVectors;

    struct Inputs {
        Elements gate;
        Elements up;
    };

    const GatedActivationParams& params;
    Threads threads;
    long long row = 0;
    int first = 0;  // vector of the row, of the piece
    int count = 0;  // vectors from there on; none past the last row

    JITNEY_DEVICE explicit GatedActivation(const GatedActivationParams& p) : params(p) {}

    template <class Item>
    JITNEY_DEVICE Item* at(Item* tensor, long long stride, int vector) const {
        return tensor + row * stride + static_cast<long long>(first + vector) * kWidth;
    }
    JITNEY_DEVICE Inputs load(int vector) const {
        return {
            load_vector<kWidth>(at(static_cast<const T*>(params.gate), params.gate_stride, vector)),
            load_vector<kWidth>(at(static_cast<const T*>(params.up), params.up_stride, vector))};
    }

    JITNEY_DEVICE static void values(const Inputs& inputs, float (&y)[kWidth]) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            y[j] = gate_value<C::activation>(inputs.gate.items[j].value()) *
                   inputs.up.items[j].value();
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

    JITNEY_DEVICE float multiplier_of_row() {
        float largest = 0.0f;
        threads.for_each(count, [&](int i, int vector) {
            float y[kWidth];
            values(load(vector), y);
            largest = max_or_nan(largest, largest_magnitude(y));
            if constexpr (kHoldsValues) KeptValues<C>::put(i, y);
        });
        const float multiplier = dynamic_fp8_multiplier(threads.largest(largest), kE4m3Largest);
        if (threads.thread == 0 && count > 0) params.scale[row] = fp8_scale(multiplier);
        return multiplier;
    }

    JITNEY_DEVICE void scale_row() {
        const float multiplier = multiplier_of_row();
        threads.for_each(count, [&](int i, int vector) {
            float y[kWidth];
            if constexpr (kHoldsValues) {
                KeptValues<C>::get(i, y);
            } else {
                values(load(vector), y);
            }
            store(vector, y, multiplier);
        });
    }

    // All loads are under way before the first of them is waited for.
    JITNEY_DEVICE void do_piece() const {
        Inputs inputs[Threads::kVectors];
        threads.for_each(count, [&](int i, int vector) { inputs[i] = load(vector); });
        const float multiplier = C::result == kScaledCodes ? *params.multiplier : 1.0f;
        threads.for_each(count, [&](int i, int vector) {
            float y[kWidth];
            values(inputs[i], y);
            store(vector, y, multiplier);
        });
    }

    JITNEY_DEVICE void take(long long piece) {
        row = piece;
        if (params.pieces != 1) {
            row = piece / params.pieces;
            first = static_cast<int>(piece - row * params.pieces) * kPieceVectors;
        }
        count = row < params.rows ? params.d / kWidth - first : 0;
    }

    // A loop that goes round once, as the grid has a block for all pieces: without it the compiler
    // takes a third more registers.
    JITNEY_DEVICE void run() {
        release_next_grid();
        wait_for_previous_grid();
        const long long pieces = params.rows * params.pieces;
        const long long step = static_cast<long long>(gridDim.x) * Threads::kRows;
        for (long long group = static_cast<long long>(blockIdx.x) * Threads::kRows; group < pieces;
             group += step) {
            take(group + threads.row);
            if constexpr (kScalesRows) {
                scale_row();
            } else {
                do_piece();
            }
        }
    }
};

template <class C>
__global__ void __launch_bounds__(row_block_threads(C::threads))
    gated_activation(const __grid_constant__ GatedActivationParams params) {
    GatedActivation<C>(params).run();
}

}  // namespace jitney
