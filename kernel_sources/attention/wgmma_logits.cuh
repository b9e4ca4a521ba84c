// How a warpgroup of attn_prefill_wgmma makes weights of scores where a soft cap or ALiBi stands
// between the two. At small head dimensions there is next to no room beside the products for more
// instructions a score. So each of the two has a way of its own, which takes three and one. Both
// together, and a caller's function, edit the scores in place (logits.cuh).
#pragma once

#include "attention/logits.cuh"
#include "attention/prefill_wgmma.h"

namespace jitney {

enum class WgmmaEdit { none, in_place, caps, slopes };

template <class C>
constexpr WgmmaEdit wgmma_edit() {
    if (!kEditsLogits<C>) return WgmmaEdit::none;
    if (kCallerEdits<C> || (C::softcap != 0 && C::alibi != 0)) return WgmmaEdit::in_place;
    return C::softcap != 0 ? WgmmaEdit::caps : WgmmaEdit::slopes;
}

// A row's maximum, as SoftmaxRows has it, in units of log2.
template <class C>
JITNEY_DEVICE float maximum_log2(const AttentionParams& params, float maximum) {
    const float scale_log2 = logit_scale_log2<C>(params);
    if (wgmma_edit<C>() != WgmmaEdit::caps) return maximum * scale_log2;
    return maximum == -infinity() ? maximum
                                  : tanh_fast(maximum * params.softcap_scale) * scale_log2;
}
// The same, or 0 where nothing was seen (log2_shift).
template <class C>
JITNEY_DEVICE float shift_of_maximum(const AttentionParams& params, float maximum) {
    return maximum == -infinity() ? 0.0f : maximum_log2<C>(params, maximum);
}

// The form for scores that are edited in place, or not at all. For each tile of rows begin() is
// called, and for each tile of keys look_at(), while its scores are computed, edit(), before keys
// are dropped, maxima(), raise() where these have risen, and weigh().
template <class C, WgmmaEdit = wgmma_edit<C>()>
struct WgmmaLogits {
    using Scores = float[C::tile_n / 8][4];

    float scale_log2;

    JITNEY_DEVICE explicit WgmmaLogits(const AttentionParams& params)
        : scale_log2(logit_scale_log2<C>(params)) {}

    // rows(half) gives what one of the lane's rows is edited by.
    template <class Rows>
    JITNEY_DEVICE void begin(const Rows&) {}
    template <class Places>
    JITNEY_DEVICE void look_at(int, const Places&) {}

    template <class Rows>
    JITNEY_DEVICE void edit(const AttentionParams& params, const Request& request, Scores& scores,
                            const SoftmaxRows&, int lane_key, const Rows& rows) const {
        if constexpr (kEditsLogits<C>) {
            edit_logits_in_floats<C>(params, request, scores, {rows(0), rows(1)}, lane_key);
        }
    }
    // The maxima of the rows with these scores, and whether one has risen far enough.
    JITNEY_DEVICE bool maxima(const Scores& scores, const SoftmaxRows& rows,
                              float (&maximum)[2]) const {
        return row_maxima_by_bits(scores, rows, scale_log2, maximum);
    }
    JITNEY_DEVICE void raise(const AttentionParams&, const float (&maximum)[2], SoftmaxRows& rows,
                             float (&factor)[2]) const {
        raise_maxima(maximum, rows, scale_log2, factor);
    }
    JITNEY_DEVICE void weigh(const AttentionParams&, Scores& scores, SoftmaxRows& rows) const {
        weigh_scores(scores, rows, scale_log2);
    }
};

// A soft cap alone. It leaves scores in their order, so that maxima are those before it. From a
// score to its logit tanh() is a factor that depends on the square of the score.
template <class C>
struct WgmmaLogits<C, WgmmaEdit::caps> {
    static constexpr int kKeyBlocks = C::tile_n / 8;
    using Scores = float[kKeyBlocks][4];

    // tanh(x) / x for |x| up to kNear, to 1.3e-5 of it: a polynomial in x^2 through the Chebyshev
    // nodes of [0, kNear^2]. A logit is off by as much of itself, which changes its weight by less
    // than rounding to an element does.
    static constexpr float kNear = 0.45f;
    static constexpr float kRatio[3] = {0x1.fffe5fp-1f, -0x1.54326ep-2f, 0x1.e4b504p-4f};
    // Below that factor of the fourth power 0 would not be far away, and 0 times infinity.
    static constexpr float kLeastFactor = 0x1p-110f;

    float scale_log2;
    float ratio[3];  // for scores, times scale_log2
    float limit;     // kNear for scores
    float shift[2];  // of the rows' maxima
    // No score of the warp's rows and the tile of keys is below -limit; none is above it.
    bool lows_near;
    bool highs_near;

    JITNEY_DEVICE explicit WgmmaLogits(const AttentionParams& params)
        : scale_log2(params.scale_log2) {
        const float square = params.softcap_scale * params.softcap_scale;
        ratio[0] = kRatio[0] * scale_log2;
        ratio[1] = kRatio[1] * scale_log2 * square;
        ratio[2] = kRatio[2] * scale_log2 * square * square;
        limit =
            ratio[2] >= kLeastFactor ? kNear * reciprocal_fast(params.softcap_scale) : -infinity();
    }

    template <class Rows>
    JITNEY_DEVICE void begin(const Rows&) {
        shift[0] = shift[1] = 0.0f;
    }
    template <class Places>
    JITNEY_DEVICE void look_at(int, const Places&) {}

    // Rows of the next request have no say in how those of this one are computed.
    JITNEY_DEVICE static bool counts(const SoftmaxRows& rows, int half) {
        return C::queries == kDenseQueries || rows.maximum[half] != infinity();
    }

    // Bits of floats, taken as unsigned, are the largest for the lowest negative one.
    template <class Rows>
    JITNEY_DEVICE void edit(const AttentionParams&, const Request&, const Scores& scores,
                            const SoftmaxRows& rows, int, const Rows&) {
        bool near = true;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned most = 0;
#pragma unroll
            for (int block = 0; block < kKeyBlocks; ++block) {
                most = max(max(most, __float_as_uint(scores[block][2 * half])),
                           __float_as_uint(scores[block][2 * half + 1]));
            }
            near = near && (__uint_as_float(most) >= -limit || !counts(rows, half));
        }
        lows_near = __all_sync(kAllLanes, near);
        highs_near = true;
    }

    JITNEY_DEVICE static bool is_far(const float (&maximum)[2], const SoftmaxRows& rows,
                                     float limit) {
        return (counts(rows, 0) && maximum[0] > limit) || (counts(rows, 1) && maximum[1] > limit);
    }
    JITNEY_DEVICE bool maxima(const Scores& scores, const SoftmaxRows& rows,
                              float (&maximum)[2]) const {
        const bool rises = row_maxima_by_bits(scores, rows, scale_log2, maximum);
        return rises || is_far(maximum, rows, limit);
    }
    JITNEY_DEVICE void raise(const AttentionParams& params, const float (&maximum)[2],
                             SoftmaxRows& rows, float (&factor)[2]) {
        highs_near = !__any_sync(kAllLanes, is_far(maximum, rows, limit));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const bool begun = rows.maximum[half] != -infinity();
            const float before = shift[half];
            shift[half] = shift_of_maximum<C>(params, maximum[half]);
            factor[half] = begun ? exp2_fast(before - shift[half]) : 0.0f;
            rows.maximum[half] = maximum[half];
            rows.sum[half] *= factor[half];
        }
    }

    // Capped scores in units of log2; keys that were dropped stay so.
    JITNEY_DEVICE static void cap(const AttentionParams& params, Scores& scores) {
        const float cap_log2 = logit_scale_log2<C>(params);
        const float twice_log2 = 2.0f * kLog2E * params.softcap_scale;
#pragma unroll
        for (int i = 0; i < kKeyBlocks * 4; ++i) {
            float& score = scores[i / 4][i % 4];
            const float capped =
                cap_log2 - 2.0f * cap_log2 * reciprocal_fast(1.0f + exp2_fast(score * twice_log2));
            score = score == -infinity() ? score : capped;
        }
    }

    JITNEY_DEVICE void weigh(const AttentionParams& params, Scores& scores,
                             SoftmaxRows& rows) const {
        float factor[3] = {ratio[0], ratio[1], ratio[2]};
        if (!(lows_near && highs_near)) {
            cap(params, scores);
            factor[0] = 1.0f;
            factor[1] = factor[2] = kLeastFactor;  // adds nothing to 1
        }
        weigh_logits(scores, rows, shift, [&factor](float score) {
            const float square = score * score;
            return score * ((factor[2] * square + factor[1]) * square + factor[0]);
        });
    }
};

// ALiBi alone. In a tile of keys that lies on one side of a row the distance grows or shrinks from
// key to key alike: what is the same for all of the lane's keys of a row, `base`, joins the
// maximum.
template <class C>
struct WgmmaLogits<C, WgmmaEdit::slopes> {
    static constexpr int kKeyBlocks = C::tile_n / 8;
    using Scores = float[kKeyBlocks][4];
    static constexpr int kLastKey = (kKeyBlocks - 1) * 8 + 1;  // of the lane, from its first

    enum Side { kBefore, kBehind, kBoth };

    // Where keys lie on both sides, three consumers have too few registers to keep the places of
    // rows and what follows from them: they are found anew.
    static constexpr bool kKeepsPlaces = C::causal != 0 || wgmma_consumers(C::tile_m) < 3;

    float scale_log2;
    float slope[2];
    int places[2];
    // A tile of keys has:
    int ahead[2];        // the row's place, from the lane's first key
    Side side;           // where the keys lie, of all of the warp's rows
    float kept_base[2];  // as base() says

    JITNEY_DEVICE explicit WgmmaLogits(const AttentionParams& params)
        : scale_log2(logit_scale_log2<C>(params)) {}

    template <class Rows>
    JITNEY_DEVICE void begin(const Rows& rows) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const OwnRowLogits row = rows(half);
            slope[half] = row.slope;
            places[half] = row.place;
        }
    }

    // Keys behind the row's own are dropped where the call is causal.
    template <class Places>
    JITNEY_DEVICE void look_at(int lane_key, const Places& place_of) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            ahead[half] = (kKeepsPlaces ? places[half] : place_of(half)) - lane_key;
        side = kBefore;
        if constexpr (C::causal == 0) {
            if (!__all_sync(kAllLanes, min(ahead[0], ahead[1]) >= kLastKey)) {
                side = __all_sync(kAllLanes, max(ahead[0], ahead[1]) <= 0) ? kBehind : kBoth;
            }
        }
        kept_base[0] = find_base(0);
        kept_base[1] = find_base(1);
    }

    // The number that has to be added to the edited scores of a row.
    JITNEY_DEVICE float base(int half) const {
        return kKeepsPlaces ? kept_base[half] : find_base(half);
    }
    JITNEY_DEVICE float find_base(int half) const {
        if (side == kBoth) return 0.0f;
        const float distance = static_cast<float>(side == kBefore ? ahead[half] : -ahead[half]);
        return -slope[half] * distance;
    }

    template <class Rows>
    JITNEY_DEVICE void edit(const AttentionParams&, const Request&, Scores& scores,
                            const SoftmaxRows&, int, const Rows&) const {
        if (side == kBoth) {
            add_distances(scores, slope, ahead);
            return;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float a_key = side == kBefore ? slope[half] : -slope[half];
#pragma unroll
            for (int block = 0; block < kKeyBlocks; ++block) {
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    scores[block][2 * half + i] += a_key * static_cast<float>(block * 8 + i);
            }
        }
    }

    JITNEY_DEVICE bool maxima(const Scores& scores, const SoftmaxRows& rows,
                              float (&maximum)[2]) const {
        float top[2] = {rows.maximum[0] - base(0), rows.maximum[1] - base(1)};
        lane_maxima_by_bits(scores, top);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            maximum[half] = warp_max<4>(fmaxf(rows.maximum[half], top[half] + base(half)));
        }
        return rises(maximum, rows, scale_log2);
    }
    JITNEY_DEVICE void raise(const AttentionParams&, const float (&maximum)[2], SoftmaxRows& rows,
                             float (&factor)[2]) const {
        raise_maxima(maximum, rows, scale_log2, factor);
    }
    JITNEY_DEVICE void weigh(const AttentionParams&, Scores& scores, SoftmaxRows& rows) const {
        const float shift[2] = {log2_shift(rows.maximum[0] - base(0), scale_log2),
                                log2_shift(rows.maximum[1] - base(1), scale_log2)};
        weigh_logits(scores, rows, shift, [this](float score) { return score * scale_log2; });
    }
};

}  // namespace jitney
