// A warpgroup of attn_prefill_wgmma that multiplies: 64 rows of a tile with all keys that they see.
// While it makes weights of the scores of one tile of keys, the product of the weights before with
// their values runs. The scheme is FlashAttention-3's (Shah et al. 2024, arXiv:2407.08608).
#pragma once

#include "attention/layout.h"
#include "attention/logits.cuh"
#include "attention/wgmma_memory.cuh"
#include "attention/wgmma_schedule.cuh"
#include "common/element.cuh"
#include "common/named_barrier.cuh"
#include "common/wgmma.cuh"

namespace jitney {

template <class C>
struct WgmmaConsumer {
    using Memory = WgmmaMemory<C>;
    using Tile = WgmmaTile<C>;
    using T = Element<C::format>;

    static constexpr int kConsumers = wgmma_consumers(C::tile_m);
    static constexpr int kKeyBlocks = C::tile_n / 8;
    static constexpr int kKeySteps = C::tile_n / 16;
    static constexpr int kDimSteps = mma_dim(C::head_dim) / 16;
    static constexpr int kDimBlocks = mma_dim(C::head_dim_v) / 8;
    static constexpr bool kTakesTurns = C::turns != 0 && kConsumers > 1;
    static constexpr int kFirstTurn = 1;  // the named barriers of the turns
    static constexpr int kAllConsumers = kFirstTurn + kConsumers;

    using Scores = float[kKeyBlocks][4];
    using Weights = unsigned[kKeySteps][4];
    using Output = float[kDimBlocks][4];

    const PrefillWgmmaParams& params;
    int consumer;  // the warpgroup's number
    int lane;
    int first_row;  // of the warp's, in the tile
    RingPlace<1> q;
    RingPlace<C::stages> k;
    RingPlace<C::stages> v;
    RingPlace<2> numbers;

    JITNEY_DEVICE explicit WgmmaConsumer(const PrefillWgmmaParams& p)
        : params(p), lane(static_cast<int>(threadIdx.x) % kWarpSize) {
        const int warp = warp_index() - 4;  // those of the producer come first
        consumer = warp / 4;
        first_row = warp * 16;
    }

    // This warp has read what the barrier guards.
    JITNEY_DEVICE void release(SharedAddress barrier) const {
        if (lane == 0) barrier_arrive(barrier);
    }

    // The warpgroups take turns to hand products to the tensor cores, so that one has its softmax
    // while the other's products run.
    JITNEY_DEVICE void take_turn() const {
        if constexpr (kTakesTurns) {
            named_barrier_wait(kFirstTurn + consumer, 2 * kWarpgroupThreads);
        }
    }
    JITNEY_DEVICE void pass_turn() const {
        if constexpr (kTakesTurns) {
            const int next = consumer + 1 == kConsumers ? 0 : consumer + 1;
            named_barrier_arrive(kFirstTurn + next, 2 * kWarpgroupThreads);
        }
    }

    // Hands the product of Q with the tile of keys in this place of the ring to the tensor cores.
    JITNEY_DEVICE void multiply_keys(Scores& scores) const {
        const WgmmaOperand rows = wgmma_operand(
            Memory::q() + consumer * 64 * kPanelRowBytes, C::tile_m * kPanelRowBytes);
        const WgmmaOperand keys = wgmma_operand(Memory::k(k.stage), C::tile_n * kPanelRowBytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < kDimSteps; ++step) {
            wgmma<C::format, false>(
                scores, wgmma_operand_at(rows, k_major_step(step, C::tile_m * kPanelRowBytes)),
                wgmma_operand_at(keys, k_major_step(step, C::tile_n * kPanelRowBytes)), step > 0);
        }
        wgmma_commit();
    }

    // The same of the weights with the tile of values.
    JITNEY_DEVICE void add_values(Output& out, const Weights& weights) const {
        const WgmmaOperand values = wgmma_operand(Memory::v(v.stage), C::tile_n * kPanelRowBytes);
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < kKeySteps; ++step) {
            wgmma<C::format, true>(out, weights[step],
                                   wgmma_operand_at(values, n_major_step(step)), true);
        }
        wgmma_commit();
    }

    JITNEY_DEVICE void pack(Weights& weights, const Scores& scores) const {
#pragma unroll
        for (int step = 0; step < kKeySteps; ++step) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float(&block)[4] = scores[2 * step + i / 2];
                weights[step][i] = T::pair(block[i % 2 * 2], block[i % 2 * 2 + 1]);
            }
        }
    }

    // The lane's rows in the request's packed rows.
    JITNEY_DEVICE int row_of(const Tile& tile, int half) const {
        return tile.first_row + first_row + lane / 4 + half * 8;
    }
    JITNEY_DEVICE PackedRow packed(const Tile& tile, int half) const {
        return packed_row(params.attention, tile.request, tile.group, row_of(tile, half));
    }

    // Edits the logits of the tile of keys at `key`, and drops those of keys that do not count.
    JITNEY_DEVICE void edit_and_mask(Scores& scores, const Tile& tile, const KeyRange& every,
                                     int key) const {
        const int lane_key = key + 2 * (lane % 4);
        if constexpr (kEditsLogits<C>) {
            edit_logits<C>(params.attention, tile.request, scores,
                           {row_logits<C>(params.attention, tile.request, tile.group,
                                          row_of(tile, 0)),
                            row_logits<C>(params.attention, tile.request, tile.group,
                                          row_of(tile, 1))},
                           lane_key);
        }
        if (leaves_range<C>(every, key, C::tile_n)) {
            const KeyRange keys[2] = {
                row_keys<C>(params.attention, tile.request, packed(tile, 0)),
                row_keys<C>(params.attention, tile.request, packed(tile, 1))};
            mask_scores(scores, lane_key, [&keys](int half, int key_of_score) {
                return lies_in<C>(keys[half], key_of_score);
            });
        }
    }

    // What the accumulators have to be scaled by.
    struct Rescale {
        bool any;  // of the warp's rows
        float factor[2];
    };

    // Makes weights of scores.
    JITNEY_DEVICE static Rescale softmax(Scores& scores, SoftmaxRows& rows, float scale_log2) {
        Rescale rescale = {false, {1.0f, 1.0f}};
        float maximum[2];
        const bool rises = row_maxima(scores, rows, scale_log2, maximum);
        rescale.any = __any_sync(kAllLanes, rises);
        if (rescale.any) raise_maxima(maximum, rows, scale_log2, rescale.factor);
        weigh_scores(scores, rows, scale_log2);
        return rescale;
    }

    // Values behind the request's last key may be anything; multiplied by weights of 0 they have to
    // be numbers. Where the maps do not end with the keys, the consumers write zeros over them.
    JITNEY_DEVICE void clear_values_behind(const Tile& tile) const {
        const int key = tile.key_of(0);
        const int left = tile.request.kv_len - key;
        if (params.attention.kv_lengths == kKvLenFixed || left >= C::tile_n) return;
        constexpr int chunks = kPanelRowBytes / 16;
        const int thread = static_cast<int>(threadIdx.x) - kWarpgroupThreads;
        char* values = shared_memory() + Memory::kLayout.v + v.stage * Memory::kVBytes;
        for (int i = thread; i < (C::tile_n - left) * chunks; i += kConsumers * kWarpgroupThreads) {
#pragma unroll
            for (int panel = 0; panel < wgmma_panels(C::head_dim_v); ++panel) {
                *reinterpret_cast<uint4*>(values + (panel * C::tile_n + left) * kPanelRowBytes +
                                          i * 16) = uint4{};
            }
        }
        fence_shared_for_async();
        named_barrier_wait(kAllConsumers, kConsumers * kWarpgroupThreads);
    }

    JITNEY_DEVICE void attend(const Tile& tile, Output& out, SoftmaxRows& rows) {
        const AttentionParams& p = params.attention;
        const float scale_log2 = logit_scale_log2<C>(p);
        const int first = tile.first_row + consumer * 64;
        const KeyRange every = tile_keys<C>(p, tile.request, first, first + 63).every;
        const int last_step = tile.key_tiles - 1;

        Scores scores;
        Weights weights;
        barrier_wait(Memory::q_full(), q.phase);
        barrier_wait(Memory::k_full(k.stage), k.phase);
        take_turn();
        multiply_keys(scores);
        pass_turn();
        wgmma_wait<0>();
        wgmma_settle(scores);
        release(Memory::k_empty(k.stage));
        k.advance();
        edit_and_mask(scores, tile, every, tile.key_of(0));
        softmax(scores, rows, scale_log2);
        pack(weights, scores);
        barrier_wait(Memory::v_full(v.stage), v.phase);
        clear_values_behind(tile);

        for (int step = 1; step <= last_step; ++step) {
            barrier_wait(Memory::k_full(k.stage), k.phase);
            take_turn();
            multiply_keys(scores);
            add_values(out, weights);
            pass_turn();
            wgmma_wait<1>();
            wgmma_settle(scores);
            release(Memory::k_empty(k.stage));
            k.advance();
            edit_and_mask(scores, tile, every, tile.key_of(step));
            const Rescale rescale = softmax(scores, rows, scale_log2);
            // The next wait stands here because the compiler would move arithmetic behind that for
            // the product, but does not move it past a loop.
            const SharedAddress read = Memory::v_empty(v.stage);
            v.advance();
            barrier_wait(Memory::v_full(v.stage), v.phase);
            wgmma_wait<0>();
            wgmma_settle(out);
            release(read);
            if (rescale.any) scale_rows(rescale.factor, out);
            wgmma_settle(scores);  // the weights take registers that the product had
            pack(weights, scores);
        }
        release(Memory::q_empty());
        q.advance();
        add_values(out, weights);
        wgmma_wait<0>();
        wgmma_settle(out);
        release(Memory::v_empty(v.stage));
        v.advance();
    }

    // Normalises, and writes the output and the LSE. The four lanes of a row change their parts of
    // four blocks of 8 columns for one whole block each, 16 bytes.
    JITNEY_DEVICE void write(const Tile& tile, const Output& out, const SoftmaxRows& rows) const {
        const AttentionParams& p = params.attention;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const PackedRow row = packed(tile, half);
            const float maximum = log2_shift(rows.maximum[half], logit_scale_log2<C>(p));
            const float sum = warp_sum<4>(rows.sum[half]);
            const RowEnd end = row_end<C>(p, row.head, maximum, row.valid ? sum : 0.0f);
            if (p.lse != nullptr && row.valid && lane % 4 == 0) {
                p.lse[query_offset_of(p.lse_strides, tile.request, row)] = end.lse;
            }
            T* to = static_cast<T*>(p.out) + query_offset_of(p.out_strides, tile.request, row);
#pragma unroll
            for (int block = 0; block < kDimBlocks; block += 4) {
                unsigned parts[4] = {};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (block + i < kDimBlocks) {
                        parts[i] = T::pair(out[block + i][2 * half] * end.norm,
                                           out[block + i][2 * half + 1] * end.norm);
                    }
                }
                transpose_quad(parts, lane % 4);
                const int column = (block + lane % 4) * 8;
                if (row.valid && column < C::head_dim_v) {
                    *reinterpret_cast<uint4*>(to + column) = {parts[0], parts[1], parts[2],
                                                              parts[3]};
                }
            }
        }
    }

    // The tile after this one, as the producer tells.
    JITNEY_DEVICE int next_tile() {
        barrier_wait(Memory::number_full(numbers.stage), numbers.phase);
        const int number = *Memory::tile_number(numbers.stage);
        __syncwarp();
        release(Memory::number_empty(numbers.stage));
        numbers.advance();
        return number;
    }

    JITNEY_DEVICE void run() {
        if (kTakesTurns && consumer == kConsumers - 1) pass_turn();
        const int tiles = wgmma_tiles<C>(params.attention);
        int number = static_cast<int>(blockIdx.x);
        while (number < tiles) {
            const Tile tile = wgmma_tile<C>(params, number);
            Output out = {};
            SoftmaxRows rows = empty_rows();
            if (tile.key_tiles > 0) attend(tile, out, rows);
            write(tile, out, rows);
            number = next_tile();
        }
    }
};

}  // namespace jitney
