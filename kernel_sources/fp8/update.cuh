// fp8_update: after a step's tensors were quantized, notes the scales that their codes have, rolls
// the history of amax, and makes the multipliers of the next step. One block.
#pragma once

#include "common/amax.cuh"
#include "common/grid_dependency.cuh"
#include "fp8/scale.h"
#include "fp8/state.h"
#include "fp8/update_params.h"

namespace jitney {

template <class C>
struct Fp8Update {
    const Fp8UpdateParams& params;

    // The first thread alone.
    JITNEY_DEVICE void note_scales() const {
        for (const Fp8UpdateRow& row : params.rows) {
            if (row.state != nullptr && row.used != nullptr) {
                *row.used = fp8_scale_of_state(row.state);
            }
        }
        for (const Fp8UpdateProduct& product : params.products) {
            if (product.out != nullptr) *product.out = fp8_product_scale(*product.a, *product.b);
        }
    }

    // Moves the history on by one, the latest amax in front, and returns the bits of the thread's
    // largest.
    JITNEY_DEVICE unsigned roll(float* history, float amax) const {
        unsigned largest = 0;
        // From the end on, a block of threads at a time, so that nothing is overwritten unread.
        for (int end = params.history; end > 0; end -= C::threads) {
            const int i = end - 1 - static_cast<int>(threadIdx.x);
            float moved = 0.0f;
            if (i >= 0) moved = i == 0 ? amax : history[i - 1];
            __syncthreads();  // all have read
            if (i >= 0) {
                history[i] = moved;
                largest = max(largest, magnitude_bits(moved));
            }
        }
        return largest;
    }

    JITNEY_DEVICE void update(const Fp8UpdateRow& row) const {
        const float amax = row.state[kFp8StateAmax];
        // A row without a history begins with the first amax of which a multiplier can be made.
        if (row.state[kFp8StateMultiplier] == 0.0f && !is_usable_amax(amax)) return;
        unsigned largest = roll(row.state + kFp8StateHistory, amax);
        largest = block_max<C::threads>(largest, reinterpret_cast<unsigned*>(shared_memory()));
        if (threadIdx.x == 0) {
            const float counts = params.latest != 0 ? amax : __uint_as_float(largest);
            const float multiplier = next_fp8_multiplier(row.state[kFp8StateMultiplier], counts,
                                                         row.largest, params.margin_power);
            row.state[kFp8StateMultiplier] = multiplier;
            row.state[kFp8StateScale] = fp8_scale(multiplier);
        }
        __syncthreads();  // the maxima's memory is free
    }

    JITNEY_DEVICE void run() const {
        release_next_grid();
        wait_for_previous_grid();
        if (threadIdx.x == 0) note_scales();  // and changes them, later
        if (params.history == 0) return;
        for (const Fp8UpdateRow& row : params.rows) {
            if (row.state != nullptr) update(row);
        }
    }
};

template <class C>
__global__ void __launch_bounds__(C::threads)
    fp8_update(const __grid_constant__ Fp8UpdateParams params) {
    Fp8Update<C>{params}.run();
}

}  // namespace jitney
