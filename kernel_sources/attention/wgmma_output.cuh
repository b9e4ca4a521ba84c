// How a warpgroup of attn_prefill_wgmma ends a tile of rows: normalised, as elements, and written.
#pragma once

#include "attention/layout.h"
#include "attention/wgmma_logits.cuh"
#include "attention/wgmma_memory.cuh"
#include "common/bulk_copy.cuh"
#include "common/element.cuh"
#include "common/named_barrier.cuh"
#include "common/stmatrix.cuh"
#include "common/tensor_copy.cuh"

namespace jitney {

template <class C>
struct WgmmaOutput {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;
    using T = Element<C::format>;

    static constexpr int kDimBlocks = mma_dim(C::head_dim_v) / 8;
    using Accumulators = float[kDimBlocks][4];

    const PrefillWgmmaParams& params;
    int consumer;

    // Read anew, since what is needed now and then has no registers in the loop.
    JITNEY_DEVICE static int lane() { return reread_thread_index() % kWarpSize; }
    JITNEY_DEVICE static int warp_row() {
        return reread_thread_index() % kWarpgroupThreads / kWarpSize * 16;
    }

    JITNEY_DEVICE int first_row(const Note& note) const {
        return note.first_row + consumer * kWarpgroupRows;
    }
    // One of the lane's two rows.
    JITNEY_DEVICE int row(const Note& note, int half) const {
        return first_row(note) + warp_row() + lane() / 4 + half * 8;
    }
    JITNEY_DEVICE PackedRow packed(const Note& note, int half) const {
        return packed_row(params.attention, note.request, note.group, row(note, half));
    }

    // What the accumulators of a row are multiplied by; writes the LSE.
    JITNEY_DEVICE float end_row(const Note& note, const PackedRow& row, float maximum,
                                float sum) const {
        const AttentionParams& p = params.attention;
        sum = warp_sum<4>(sum);
        const RowEnd end =
            row_end<C>(p, row.head, shift_of_maximum<C>(p, maximum), row.valid ? sum : 0.0f);
        if (p.lse != nullptr && row.valid && lane() % 4 == 0) {
            p.lse[query_offset_of(p.lse_strides, note.request, row)] = end.lse;
        }
        return end.norm;
    }

    // Through the memory of the rows of Q, which nobody reads any more, and by the copy engine;
    // that leaves out rows past the tensor's end, but not those of another request.
    JITNEY_DEVICE void write(const Note& note, int q_stage, const Accumulators& out,
                             const SoftmaxRows& rows) const {
        float norms[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            norms[half] = end_row(note, packed(note, half), rows.maximum[half], rows.sum[half]);
        }
        if constexpr (!Memory::kStagesOutput) {
            write_rows(note, out, norms);
        } else {
            static_assert(wgmma_panels(C::head_dim_v) <= wgmma_panels(C::head_dim));
            const AttentionParams& p = params.attention;
            const int rows_left = note.request.q_len * p.group - first_row(note);
            // All warps have read Q.
            named_barrier_wait(kFirstBarrier + consumer, kWarpgroupThreads);
            if (C::queries == kPackedQueries && rows_left < kWarpgroupRows) {
                write_rows(note, out, norms);
                return;
            }
            stage(Memory::q(q_stage, consumer), out, norms);
            fence_shared_for_async();
            named_barrier_wait(kFirstBarrier + consumer, kWarpgroupThreads);
            if (threadIdx.x % kWarpgroupThreads == 0) {
                const int batch = C::queries == kPackedQueries ? 0 : note.request.batch;
                const int position = note.request.first_query + first_row(note) / p.group;
#pragma unroll
                for (int panel = 0; panel < wgmma_panels(C::head_dim_v); ++panel) {
                    tensor_store(&params.out,
                                 Memory::q(q_stage, consumer) + panel * C::tile_m * kPanelRowBytes,
                                 panel * kPanelColumns, 0, position, note.group, batch);
                }
                bulk_store_commit();
            }
        }
    }

    static constexpr int kFirstBarrier = 2;  // named barriers, one a consumer

    JITNEY_DEVICE static void stage(SharedAddress q, const Accumulators& out,
                                    const float (&norms)[2]) {
        // Of four matrices a lane has the rows of the upper or the lower half of the warp's, and
        // one of two neighbouring chunks.
        const int row = warp_row() + lane() % 16;
        const int chunk = lane() / 16 ^ row % 8;
        const SharedAddress to = q + row * kPanelRowBytes;
#pragma unroll
        for (int block = 0; block < kDimBlocks; block += 2) {
            unsigned parts[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float(&columns)[4] = out[block + i / 2];
                parts[i] = T::pair(columns[i % 2 * 2] * norms[i % 2],
                                   columns[i % 2 * 2 + 1] * norms[i % 2]);
            }
            stmatrix_x4(to + block / 8 * C::tile_m * kPanelRowBytes + (block % 8 ^ chunk) * 16,
                        parts[0], parts[1], parts[2], parts[3]);
        }
    }

    // Straight from the registers. The four lanes of a row change their parts of four blocks of 8
    // columns for one whole block each, 16 bytes.
    JITNEY_DEVICE void write_rows(const Note& note, const Accumulators& out,
                                  const float (&norms)[2]) const {
        const AttentionParams& p = params.attention;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const PackedRow row = packed(note, half);
            T* to = static_cast<T*>(p.out) + query_offset_of(p.out_strides, note.request, row);
#pragma unroll
            for (int block = 0; block < kDimBlocks; block += 4) {
                unsigned parts[4] = {};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (block + i < kDimBlocks) {
                        parts[i] = T::pair(out[block + i][2 * half] * norms[half],
                                           out[block + i][2 * half + 1] * norms[half]);
                    }
                }
                transpose_quad(parts, lane() % 4);
                const int column = (block + lane() % 4) * 8;
                if (row.valid && column < C::head_dim_v) {
                    *reinterpret_cast<uint4*>(to + column) = {parts[0], parts[1], parts[2],
                                                              parts[3]};
                }
            }
        }
    }
};

}  // namespace jitney
