// Online softmax on the fragments of an mma: a lane holds two rows of a 16-row block, row = l / 4
// and row + 8, and of each the columns 2 * (l % 4) and the next of every 8.
#pragma once

#include "common/numeric.cuh"
#include "common/warp.cuh"

namespace jitney {

// The running state of the two rows of a lane.
struct SoftmaxRows {
    float maximum[2];  // that the accumulators are scaled to, of raw scores; the same in the four
                       // lanes of a row
    float sum[2];      // of this lane's columns only
};

JITNEY_DEVICE SoftmaxRows empty_rows() {
    return {{-infinity(), -infinity()}, {0.0f, 0.0f}};
}

// The scores' maximum in units of log2, or 0 where nothing was seen: subtracting it is then
// harmless, where -inf - (-inf) would not be.
JITNEY_DEVICE float log2_shift(float maximum, float scale_log2) {
    return maximum == -infinity() ? 0.0f : maximum * scale_log2;
}

// How far, in units of log2, a score may rise above the maximum that the accumulators are scaled
// to before they are scaled anew. The result does not depend on it, but the accumulators are
// rarely touched; weights up to 2^8 are as exact in bf16 and fp16 as those up to 1.
constexpr float kRescaleThreshold = 8.0f;

JITNEY_DEVICE bool rises(const float (&maximum)[2], const SoftmaxRows& rows, float scale_log2) {
    return maximum[0] * scale_log2 > rows.maximum[0] * scale_log2 + kRescaleThreshold ||
           maximum[1] * scale_log2 > rows.maximum[1] * scale_log2 + kRescaleThreshold;
}

// The maxima of the rows with these scores, and whether one has risen far enough.
template <int key_blocks>
JITNEY_DEVICE bool row_maxima(const float (&scores)[key_blocks][4], const SoftmaxRows& rows,
                              float scale_log2, float (&maximum)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        maximum[half] = rows.maximum[half];
#pragma unroll
        for (int block = 0; block < key_blocks; ++block) {
            maximum[half] =
                fmaxf(maximum[half], fmaxf(scores[block][2 * half], scores[block][2 * half + 1]));
        }
        maximum[half] = warp_max<4>(maximum[half]);
    }
    return rises(maximum, rows, scale_log2);
}

// From sm_90 on there is an instruction for the largest of three integers, which halves what maxima
// take. The bits of floats that are not negative are in their order, and every other is less: that
// finds the maximum unless it is negative. Of one of the lane's rows, and a number beside it:
template <int key_blocks>
JITNEY_DEVICE int top_by_bits(const float (&scores)[key_blocks][4], int half, float beside) {
    int top[2] = {__float_as_int(beside), __float_as_int(beside)};
#pragma unroll
    for (int block = 0; block < key_blocks; ++block) {
        int& chain = top[block % 2];
        chain = max(max(chain, __float_as_int(scores[block][2 * half])),
                    __float_as_int(scores[block][2 * half + 1]));
    }
    return max(top[0], top[1]);
}

// row_maxima so.
template <int key_blocks>
JITNEY_DEVICE bool row_maxima_by_bits(const float (&scores)[key_blocks][4], const SoftmaxRows& rows,
                                      float scale_log2, float (&maximum)[2]) {
    bool negative = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int most = top_by_bits(scores, half, rows.maximum[half]);
        most = max(most, __shfl_xor_sync(kAllLanes, most, 2));
        most = max(most, __shfl_xor_sync(kAllLanes, most, 1));
        negative |= most < 0;
        maximum[half] = __int_as_float(most);
    }
    if (__any_sync(kAllLanes, negative)) return row_maxima(scores, rows, scale_log2, maximum);
    return rises(maximum, rows, scale_log2);
}

// The maxima of the lane's scores of its two rows and of what `top` had before.
template <int key_blocks>
JITNEY_DEVICE void lane_maxima_by_bits(const float (&scores)[key_blocks][4], float (&top)[2]) {
    const int most[2] = {top_by_bits(scores, 0, top[0]), top_by_bits(scores, 1, top[1])};
    if (!__any_sync(kAllLanes, min(most[0], most[1]) < 0)) {
        top[0] = __int_as_float(most[0]);
        top[1] = __int_as_float(most[1]);
        return;
    }
#pragma unroll
    for (int i = 0; i < key_blocks * 4; ++i)
        top[i % 4 / 2] = fmaxf(top[i % 4 / 2], scores[i / 4][i % 4]);
}

// Scales the sums to new maxima, and gives what the accumulators have to be scaled by.
JITNEY_DEVICE void raise_maxima(const float (&maximum)[2], SoftmaxRows& rows, float scale_log2,
                                float (&rescale)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        rescale[half] =
            exp2_fast(rows.maximum[half] * scale_log2 - log2_shift(maximum[half], scale_log2));
        rows.maximum[half] = maximum[half];
        rows.sum[half] *= rescale[half];
    }
}

template <int dim_blocks>
JITNEY_DEVICE void scale_rows(const float (&rescale)[2], float (&out)[dim_blocks][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int block = 0; block < dim_blocks; ++block) {
            out[block][2 * half] *= rescale[half];
            out[block][2 * half + 1] *= rescale[half];
        }
    }
}

// Scales sums and accumulators to new maxima.
template <int dim_blocks>
JITNEY_DEVICE void rescale_rows(const float (&maximum)[2], float (&out)[dim_blocks][4],
                                SoftmaxRows& rows, float scale_log2) {
    float rescale[2];
    raise_maxima(maximum, rows, scale_log2, rescale);
    scale_rows(rescale, out);
}

// Replaces the scores by 2^(logit_of(score) - shift), and adds them to the row sums.
template <int key_blocks, class LogitOf>
JITNEY_DEVICE void weigh_logits(float (&scores)[key_blocks][4], SoftmaxRows& rows,
                                const float (&shift)[2], const LogitOf& logit_of) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int block = 0; block < key_blocks; ++block) {
#pragma unroll
            for (int column = 2 * half; column < 2 * half + 2; ++column) {
                float& score = scores[block][column];
                score = exp2_fast(logit_of(score) - shift[half]);
                rows.sum[half] += score;
            }
        }
    }
}

// Replaces the scores by 2^(scale_log2 * (score - maximum)), and adds them to the row sums.
template <int key_blocks>
JITNEY_DEVICE void weigh_scores(float (&scores)[key_blocks][4], SoftmaxRows& rows,
                                float scale_log2) {
    const float shift[2] = {log2_shift(rows.maximum[0], scale_log2),
                            log2_shift(rows.maximum[1], scale_log2)};
    weigh_logits(scores, rows, shift, [scale_log2](float score) { return score * scale_log2; });
}

// A tile's step where one warp has the rows alone.
template <int key_blocks, int dim_blocks>
JITNEY_DEVICE void online_softmax(float (&scores)[key_blocks][4], float (&out)[dim_blocks][4],
                                  SoftmaxRows& rows, float scale_log2) {
    float maximum[2];
    const bool any_rises = row_maxima(scores, rows, scale_log2, maximum);
    if (__any_sync(kAllLanes, any_rises)) rescale_rows(maximum, out, rows, scale_log2);
    weigh_scores(scores, rows, scale_log2);
}

// How a row ends: what its accumulators are multiplied by, and the natural-log LSE.
struct RowEnd {
    float norm;
    float lse;
};

// From the maximum in units of log2 and the sum; 0 and -inf where nothing was seen.
JITNEY_DEVICE RowEnd row_end(float maximum_log2, float sum) {
    if (sum == 0.0f) return {0.0f, -infinity()};
    return {1.0f / sum, (maximum_log2 + log2_fast(sum)) * kLn2};
}

}  // namespace jitney
