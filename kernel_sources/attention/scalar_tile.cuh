// Attention without tensor cores, for every format, head dimension and GPU: a warp owns
// tile_m / 4 query rows; for the scores a lane owns a key, for the output a lane owns every 32nd
// element of the head. K and V share one tile of shared memory.
#pragma once

#include "attention/kv_rows.cuh"
#include "attention/layout.h"
#include "attention/logits.cuh"
#include "attention/masking.cuh"
#include "attention/split.cuh"

namespace jitney {

template <class C, bool append>
struct ScalarTile {
    static_assert(C::tile_n <= 32);
    using T = Element<C::format>;
    using Result = RowResult<C::head_dim, 1>;
    static constexpr int kRows = C::tile_m / kAttentionWarps;
    static constexpr int kRowBytes = scalar_row_bytes(C::head_dim, sizeof(T));

    const AttentionParams& params;
    const Request& request;
    int kv_head;
    int first_row;  // of the block's packed rows
    int lane;
    int warp;
    float* queries;  // [tile_m, head_dim], as fp32
    char* tile;      // [tile_n] rows of K or V

    JITNEY_DEVICE ScalarTile(const AttentionParams& p, const Request& of, int kv_head_index,
                             int first_packed_row)
        : params(p),
          request(of),
          kv_head(kv_head_index),
          first_row(first_packed_row),
          lane(static_cast<int>(threadIdx.x) % 32),
          warp(warp_index()),
          queries(reinterpret_cast<float*>(shared_memory())),
          tile(shared_memory() + C::tile_m * C::head_dim * 4) {}

    // The word of shared memory behind everything else.
    JITNEY_DEVICE unsigned* flag() const {
        return reinterpret_cast<unsigned*>(tile + C::tile_n * kRowBytes);
    }

    JITNEY_DEVICE static T* row_of(char* rows, int row) {
        return reinterpret_cast<T*>(rows + row * kRowBytes);
    }

    // Keys past `end` become zero and are not read. Without append new_k is not looked at.
    JITNEY_DEVICE void load(const void* tensor, const AttentionStrides& strides,
                            const void* new_rows, const AttentionStrides& new_strides, int key,
                            int end) const {
        const KvHead head = kv_head_of<C>(tensor, strides, request, kv_head, sizeof(T));
        const int first_new = request.kv_len - params.new_len;
        for (int i = static_cast<int>(threadIdx.x); i < C::tile_n * C::head_dim;
             i += kAttentionThreads) {
            const int row = i / C::head_dim;
            const int dim = i - row * C::head_dim;
            T value = T::from(0.0f);
            if (key + row < end) {
                const T* from;
                if (append && key + row >= first_new) {
                    from = static_cast<const T*>(new_rows) +
                           offset_of(new_strides, request.batch, key + row - first_new, kv_head);
                } else {
                    from = reinterpret_cast<const T*>(kv_row<C>(params, request, head, key + row));
                }
                value = from[dim];
            }
            row_of(tile, row)[dim] = value;
        }
    }

    JITNEY_DEVICE void load_k(int key, int end) const {
        load(params.k, params.k_strides, params.new_k, params.new_k_strides, key, end);
    }
    JITNEY_DEVICE void load_v(int key, int end) const {
        load(params.v, params.v_strides, params.new_v, params.new_v_strides, key, end);
    }

    JITNEY_DEVICE void load_queries() const {
        for (int i = static_cast<int>(threadIdx.x); i < C::tile_m * C::head_dim;
             i += kAttentionThreads) {
            const int row = i / C::head_dim;
            const int dim = i - row * C::head_dim;
            const PackedRow packed = packed_row(params, request, kv_head, first_row + row);
            queries[i] =
                packed.valid
                    ? static_cast<const T*>(
                          params.q)[query_offset_of(params.q_strides, request, packed) + dim]
                          .value()
                    : 0.0f;
        }
    }

    // Raw scores of this warp's rows against this lane's key.
    JITNEY_DEVICE void multiply_keys(float (&scores)[kRows]) const {
        const T* key = row_of(tile, lane % C::tile_n);
        const float* rows = queries + warp * kRows * C::head_dim;
#pragma unroll
        for (int row = 0; row < kRows; ++row)
            scores[row] = 0.0f;
        for (int dim = 0; dim < C::head_dim; ++dim) {
            const float k = key[dim].value();
#pragma unroll
            for (int row = 0; row < kRows; ++row)
                scores[row] += rows[row * C::head_dim + dim] * k;
        }
    }

    // Passes over the keys to which none of the warp's rows gives a weight: their values may be
    // NaN. Without a mask some row of the block sees each key of its range.
    JITNEY_DEVICE void multiply_values(Result (&results)[kRows],
                                       const float (&weights)[kRows]) const {
        unsigned weighted = kAllLanes;
        if constexpr (C::mask != 0) {
            bool any = false;
#pragma unroll
            for (int row = 0; row < kRows; ++row)
                any = any || weights[row] != 0.0f;
            weighted = __ballot_sync(kAllLanes, any);
        }
        for (int key = 0; key < C::tile_n; ++key) {
            if (C::mask != 0 && (weighted >> key & 1u) == 0) continue;
            Vector<float, 1> values[Result::kVectors];
            Result::for_each_vector(
                lane, [&](int i, int dim) { values[i].items[0] = row_of(tile, key)[dim].value(); });
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                results[row].add(values, __shfl_sync(kAllLanes, weights[row], key), lane);
            }
        }
    }

    // Attention of this warp's rows over the keys of a range.
    JITNEY_DEVICE void run(const KeyRange& range, Result (&results)[kRows]) const {
        RowLimits limits[kRows];
        RowLogits<C> logits[kRows];
        const float scale_log2 = logit_scale_log2<C>(params);
        float maxima[kRows];
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            results[row] = {};
            maxima[row] = -infinity();
            const int packed = first_row + warp * kRows + row;
            limits[row] = row_limits<C>(params, request, kv_head, packed);
            logits[row] = row_logits<C>(params, request, kv_head, packed);
        }
        load_queries();
        for (int key = range.first; key < range.end; key += C::tile_n) {
            __syncthreads();  // nobody reads the V before it any more
            load_k(key, range.end);
            __syncthreads();
            float scores[kRows];
            multiply_keys(scores);
            __syncthreads();  // nobody reads this K any more
            load_v(key, range.end);
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                const int my_key = key + lane;
                const bool counts =
                    lane < C::tile_n && my_key < range.end && keeps<C>(limits[row], my_key);
                const float score =
                    counts ? edit_logit<C>(params, request, logits[row], scores[row], my_key) *
                                 scale_log2
                           : -infinity();
                const float maximum = fmaxf(maxima[row], warp_max(score));
                const float shift = maximum == -infinity() ? 0.0f : maximum;
                const float rescale = exp2_fast(maxima[row] - shift);
                maxima[row] = maximum;
                scores[row] = exp2_fast(score - shift);
                results[row].maximum = shift;
                results[row].sum = results[row].sum * rescale + scores[row];
                results[row].scale(rescale);
            }
            __syncthreads();
            multiply_values(results, scores);
        }
#pragma unroll
        for (int row = 0; row < kRows; ++row)
            results[row].sum = warp_sum(results[row].sum);
    }
};

}  // namespace jitney
