// What happens to a score between the product and the softmax: a logits function of the caller's,
// soft cap and ALiBi, in this order. Each is compiled in only where it is asked for.
#pragma once

#include "attention/rows.cuh"
#include "attention/softmax.cuh"

namespace jitney {

// tanh(x) to about 1e-7 absolute: the instruction of that name is good for 5e-4 only.
JITNEY_DEVICE float tanh_fast(float x) {
    return 1.0f - 2.0f * reciprocal_fast(1.0f + exp2_fast(2.0f * kLog2E * x));
}

// What a caller's function is told beside the score.
struct LogitPlace {
    int batch;
    int head;
    int query;
    int key;
    int place;  // of the query among the keys
    int q_len;
    int kv_len;
};

// A parameter of such a function from its bits.
template <class T>
struct CallerValue;
template <class T>
struct CallerValue<T*> {
    JITNEY_DEVICE static T* of(unsigned long long bits) { return reinterpret_cast<T*>(bits); }
};
template <>
struct CallerValue<float> {
    JITNEY_DEVICE static float of(unsigned long long bits) {
        return __uint_as_float(static_cast<unsigned>(bits));
    }
};
template <>
struct CallerValue<int> {
    JITNEY_DEVICE static int of(unsigned long long bits) { return static_cast<int>(bits); }
};
template <>
struct CallerValue<long long> {
    JITNEY_DEVICE static long long of(unsigned long long bits) {
        return static_cast<long long>(bits);
    }
};

// Whether the constants bring a function of the caller's along.
template <class C>
constexpr bool kCallerEdits = requires {
    &C::edit_by_caller;
};

template <class C>
constexpr bool kEditsLogits = C::softcap != 0 || C::alibi != 0 || kCallerEdits<C>;

// What a row's scores are edited by.
struct OwnRowLogits {
    float slope;  // ALiBi, in the units of an edited score a key
    int place;    // of the query among the keys
};
struct CallerRowLogits : OwnRowLogits {
    int head;
};
template <bool caller>
struct RowLogitsType {
    using Type = OwnRowLogits;
};
template <>
struct RowLogitsType<true> {
    using Type = CallerRowLogits;
};
template <class C>
using RowLogits = typename RowLogitsType<kCallerEdits<C>>::Type;

// Scores after editing are in other units than before: what they have to be multiplied by to be
// logits in units of log2. A capped score is tanh(), to be multiplied by the cap.
template <class C>
JITNEY_DEVICE float logit_scale_log2(const AttentionParams& params) {
    return C::softcap != 0 ? params.scale_log2 * reciprocal_fast(params.softcap_scale)
                           : params.scale_log2;
}

template <class C>
JITNEY_DEVICE RowLogits<C> row_logits(const AttentionParams& params, const Request& request,
                                      int kv_head, int row) {
    RowLogits<C> logits = {};
    if constexpr (C::alibi != 0 || kCallerEdits<C>) {
        const PackedRow packed = packed_row(params, request, kv_head, row);
        if constexpr (C::alibi != 0) {
            if (packed.valid) {
                logits.slope = params.alibi_slopes[packed.head] * kLog2E *
                               reciprocal_fast(logit_scale_log2<C>(params));
            }
        }
        if constexpr (kCallerEdits<C>) logits.head = packed.head;
        logits.place = packed.position + request.query_offset();
    }
    return logits;
}

// ALiBi (Press et al. 2022, arXiv:2108.12409): logit - slope * |place - key|. The caller's function
// is asked for keys and queries of the request alone; what others score is dropped later.
template <class C>
JITNEY_DEVICE float edit_by_caller(const AttentionParams& params, const Request& request,
                                   const RowLogits<C>& row, float score, int key) {
    const LogitPlace at = {request.batch, row.head,  row.place - request.query_offset(),
                           key,           row.place, request.q_len,
                           request.kv_len};
    if (at.key >= at.kv_len || at.query >= at.q_len) return score;
    return C::edit_by_caller(score * params.caller_scale, at, params.caller_values);
}
template <class C>
JITNEY_DEVICE float edit_logit(const AttentionParams& params, const Request& request,
                               const RowLogits<C>& row, float score, int key) {
    if constexpr (kCallerEdits<C>) score = edit_by_caller<C>(params, request, row, score, key);
    if constexpr (C::softcap != 0) score = tanh_fast(score * params.softcap_scale);
    if constexpr (C::alibi != 0) {
        const int distance = row.place - key;
        score -= row.slope * static_cast<float>(distance < 0 ? -distance : distance);
    }
    return score;
}

// Edits the scores of one 16-row block of an mma. `key` is the lane's first key in the tile.
template <class C, int key_blocks>
JITNEY_DEVICE void edit_logits(const AttentionParams& params, const Request& request,
                               float (&scores)[key_blocks][4], const RowLogits<C> (&rows)[2],
                               int key) {
#pragma unroll
    for (int block = 0; block < key_blocks; ++block) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            scores[block][i] = edit_logit<C>(params, request, rows[i / 2], scores[block][i],
                                             key + block * 8 + i % 2);
        }
    }
}

// ALiBi of the lane's scores, whose first key lies `ahead` before the place of each row: distances
// are counted in floats, which takes fewer instructions.
template <int key_blocks>
JITNEY_DEVICE void add_distances(float (&scores)[key_blocks][4], const float (&slope)[2],
                                 const int (&ahead)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float first = static_cast<float>(ahead[half]);
#pragma unroll
        for (int block = 0; block < key_blocks; ++block) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float distance = first - static_cast<float>(block * 8 + i);
                scores[block][2 * half + i] -= slope[half] * fabsf(distance);
            }
        }
    }
}

// edit_logits with such distances.
template <class C, int key_blocks>
JITNEY_DEVICE void edit_logits_in_floats(const AttentionParams& params, const Request& request,
                                         float (&scores)[key_blocks][4],
                                         const RowLogits<C> (&rows)[2], int key) {
#pragma unroll
    for (int i = 0; i < key_blocks * 4; ++i) {
        float& score = scores[i / 4][i % 4];
        if constexpr (kCallerEdits<C>) {
            score =
                edit_by_caller<C>(params, request, rows[i % 4 / 2], score, key + i / 4 * 8 + i % 2);
        }
        if constexpr (C::softcap != 0) score = tanh_fast(score * params.softcap_scale);
    }
    if constexpr (C::alibi != 0) {
        add_distances(scores, {rows[0].slope, rows[1].slope},
                      {rows[0].place - key, rows[1].place - key});
    }
}

// The end of a row of query head `head`, whose denominator an attention sink joins. A row that
// sees no key stays empty.
template <class C>
JITNEY_DEVICE RowEnd row_end(const AttentionParams& params, int head, float maximum_log2,
                             float sum) {
    if constexpr (C::sinks != 0) {
        if (sum != 0.0f) {
            // In units of the larger of both, so that neither overflows beside the other.
            const float sink = params.sinks[head] * kLog2E;
            const float top = fmaxf(maximum_log2, sink);
            const float shrink = exp2_fast(maximum_log2 - top);
            RowEnd end = row_end(top, sum * shrink + exp2_fast(sink - top));
            end.norm *= shrink;
            return end;
        }
    }
    return row_end(maximum_log2, sum);
}

}  // namespace jitney
