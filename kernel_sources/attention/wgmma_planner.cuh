// Which tiles of rows a block of attn_prefill_wgmma works on: one of its warps finds out what comes
// next, and leaves notes of it in shared memory for the others.
#pragma once

#include "attention/masking.cuh"
#include "attention/wgmma_memory.cuh"

namespace jitney {

template <class C>
struct WgmmaPlanner {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;
    using Rows = WgmmaRows<C>;

    const PrefillWgmmaParams& params;
    RingPlace<kWgmmaNotes> notes;
    RingPlace<1> taken;

    JITNEY_DEVICE static int lane() { return static_cast<int>(threadIdx.x) % kWarpSize; }

    JITNEY_DEVICE int tiles() const {
        const AttentionParams& p = params.attention;
        return p.row_tiles * p.kv_heads * (C::queries == kPackedQueries ? 1 : p.batch);
    }

    // A tile of rows by its place among those of a head, and by the head. Packed: of all requests.
    struct Turn {
        int row_tile;
        int head;
    };
    JITNEY_DEVICE Turn turn_of(int number) const {
        const AttentionParams& p = params.attention;
        if constexpr (C::causal != 0 || C::mask != 0 || C::queries == kPackedQueries) {
            // Some heads take turns, then the next.
            const int heads = p.kv_heads * (C::queries == kPackedQueries ? 1 : p.batch);
            const int band = number / (params.heads_at_a_time * p.row_tiles);
            const int first_head = band * params.heads_at_a_time;
            const int heads_here = min(params.heads_at_a_time, heads - first_head);
            const int in_band = number - first_head * p.row_tiles;
            const int turn = in_band / heads_here;
            return {turn, first_head + in_band - turn * heads_here};
        } else {
            const int head = number / p.row_tiles;
            return {number - head * p.row_tiles, head};
        }
    }

    // The rows of tile number `number` in the order in which tiles are taken; false: it has none.
    JITNEY_DEVICE bool find_rows(Rows& note, int number) const {
        const AttentionParams& p = params.attention;
        const Turn turn = turn_of(number);
        int batch;
        int row_tile;
        if constexpr (C::queries == kPackedQueries) {
            // Those of a request stand the last first (attn_work_map).
            note.group = turn.head;
            batch = p.tile_batch[turn.row_tile];
            if (batch < 0) return false;
            row_tile = p.tile_index[turn.row_tile];
        } else {
            // The longest first where some see more keys.
            constexpr bool longest_last = C::causal != 0 || C::mask != 0;
            row_tile = longest_last ? p.row_tiles - 1 - turn.row_tile : turn.row_tile;
            batch = turn.head / p.kv_heads;
            note.group = turn.head - batch * p.kv_heads;
        }
        note.request = request_of<C::kv, C::queries>(p, batch);
        note.first_row = row_tile * C::tile_m;
        return true;
    }

    // The keys of the rows. Rows that see none get a tile of keys all the same, of which nothing
    // counts. Steps whose keys no row of a consumer sees are left out at its beginning: at most
    // two, which is as far as K may run ahead of V.
    JITNEY_DEVICE void find_keys(Rows& note) const {
        static_assert(C::tile_m - kWarpgroupRows <= 2 * C::tile_n);
        const AttentionParams& p = params.attention;
        const int last_row = note.last_row(p.group);
        const auto keys_of = [&](int first, int rows) {
            return tile_keys<C>(p, note.request, min(first, last_row),
                                min(first + rows - 1, last_row));
        };
        const auto tiles_to = [&](int end) {
            return max((end - note.first_key + C::tile_n - 1) / C::tile_n, 1);
        };
        const KeyRange any = keys_of(note.first_row, C::tile_m).any;
        note.first_seen = any.first;
        note.first_key = any.first;
        if (C::mask != 0) note.first_key -= any.first % C::tile_n;
        if (C::kv == kPagedKv && C::window != 0 && params.box_keys != 0) {
            note.first_key -= any.first % params.box_keys;
        }
        note.key_tiles = tiles_to(any.end);
#pragma unroll
        for (int consumer = 0; consumer < Memory::kConsumers; ++consumer) {
            const int first = note.first_row + consumer * kWarpgroupRows;
            const TileKeys keys = keys_of(first, kWarpgroupRows);
            const int steps = first > last_row ? 0 : tiles_to(keys.any.end);
            note.first_step[consumer] = note.key_tiles - steps;
            note.every[consumer] = keys.every;
        }
    }

    // With a mask: finds the tiles of keys that a row keeps a key of. A lane looks at a span of
    // keys, in the summary of the rows' bands. Where there is none the first tile stays.
    JITNEY_DEVICE void find_kept_tiles(Rows& note, Note& to) const {
        const AttentionParams& p = params.attention;
        const MaskBits& mask = p.mask_bits;
        constexpr int tiles_a_span = kMaskSpanKeys / C::tile_n;
        constexpr int lanes_a_word = 32 / tiles_a_span;
        constexpr int groups_a_tile = C::tile_n / kMaskGroupKeys;
        const int first_tile = note.first_seen / C::tile_n;
        const int end_tile = first_tile + note.key_tiles;
        const int last_row = min(note.first_row + C::tile_m - 1, note.last_row(p.group));
        const int first_span = first_tile / 32 * lanes_a_word;
        int count = 0;
        int last = first_tile;
        for (int base = first_span; base * tiles_a_span < end_tile; base += kWarpSize) {
            const int span = base + lane();
            unsigned groups = 0;
            if (span * tiles_a_span < end_tile && (span + 1) * tiles_a_span > first_tile &&
                span < mask_spans(mask.keys)) {
                groups = kept_groups(mask, note, last_row, span, p.group);
            }
            unsigned tiles = 0;
#pragma unroll
            for (int tile = 0; tile < tiles_a_span; ++tile) {
                const int number = span * tiles_a_span + tile;
                const unsigned any = groups >> tile * groups_a_tile & ((1u << groups_a_tile) - 1);
                const bool kept = any != 0 && number >= first_tile && number < end_tile;
                tiles |= (kept ? 1u : 0u) << tile;
            }
            tiles <<= span % lanes_a_word * tiles_a_span;
#pragma unroll
            for (int step = 1; step < lanes_a_word; step *= 2)
                tiles |= __shfl_xor_sync(kAllLanes, tiles, step);
            const bool writes = span % lanes_a_word == 0;
            const int word = span / lanes_a_word;
            if (writes && word < kWgmmaTileWords) to.kept[word] = tiles;
            const unsigned with_tiles = __ballot_sync(kAllLanes, writes && tiles != 0);
            count += warp_sum(writes ? __popc(tiles) : 0);
            if (with_tiles != 0) {
                const int top = 31 - __clz(static_cast<int>(with_tiles));
                const unsigned of_top = __shfl_sync(kAllLanes, tiles, top);
                last = (base + top) / lanes_a_word * 32 + 31 - __clz(static_cast<int>(of_top));
            }
        }
        __syncwarp();  // the words are there
        note.last_tile = last;
        note.key_tiles = max(count, 1);
#pragma unroll
        for (int consumer = 0; consumer < Memory::kConsumers; ++consumer) {
            if (note.first_row + consumer * kWarpgroupRows > note.last_row(p.group)) {
                note.first_step[consumer] = note.key_tiles;
                continue;
            }
            // Kept tiles behind the last that the consumer's rows see.
            int steps = 0;
            for (int tile = end_tile - note.first_step[consumer]; tile < end_tile; ++tile)
                steps += to.keeps_tile(tile) ? 1 : 0;
            note.first_step[consumer] = min(steps, note.key_tiles - 1);
        }
    }

    // Which groups of a span a row of the note's, up to the last, keeps a key of.
    JITNEY_DEVICE static unsigned kept_groups(const MaskBits& mask, const Rows& note, int last_row,
                                              int span, int group_size) {
        const bool one_row = mask.rows == 1;
        const int first_position = note.first_row / group_size;
        const int first_band = one_row ? 0 : first_position / kMaskBandRows;
        const int last_band = one_row ? 0 : last_row / group_size / kMaskBandRows;
        const int first_head = mask.heads == 1 ? 0 : note.group * group_size;
        const int heads = mask.heads == 1 ? 1 : group_size;
        unsigned groups = 0;
        for (int head = first_head; head < first_head + heads; ++head) {
            const unsigned* from =
                mask.summary +
                mask_band(mask, note.request.batch, head, first_position) * mask_spans(mask.keys) +
                span;
#pragma unroll 4
            for (int band = first_band; band <= last_band; ++band) {
                groups |= *from;
                from += mask_spans(mask.keys);
            }
        }
        return groups;
    }

    // Writes the next note, which all lanes have alike.
    JITNEY_DEVICE void leave(Rows& note) {
        const SharedAddress full = Memory::note_full(notes.stage);
        barrier_wait(Memory::empty_of(full), notes.phase ^ 1);
        Note& to = *Memory::note(notes.stage);
        if constexpr (C::mask != 0) {
            if (note.key_tiles != 0) find_kept_tiles(note, to);
        }
        if (lane() == 0) {
            static_cast<Rows&>(to) = note;
            barrier_arrive(full);
        }
        notes.advance();
    }

    // Every block starts with the tile of its own number. Where there are more tiles than blocks,
    // it asks the counter for another until there is none left: as often, in all, as there are
    // tiles, so that the counter comes back to zero. It asks when the tile before has been begun,
    // since what it takes too early another block may have to wait for in the end.
    JITNEY_DEVICE void run() {
        const int count = tiles();
        const int blocks = static_cast<int>(gridDim.x);
        int number = static_cast<int>(blockIdx.x);
        while (number < count) {
            Rows note;
            if (find_rows(note, number)) {
                find_keys(note);
                leave(note);
                barrier_wait(Memory::note_taken(), taken.phase);
                taken.advance();
            }
            number = count;
            if (blocks < count) {
                if (lane() == 0) {
                    number = blocks + static_cast<int>(atomicInc(params.next_tile,
                                                                 static_cast<unsigned>(count) - 1));
                }
                number = same_in_warp(number);
            }
        }
        Rows end;
        end.key_tiles = 0;
        leave(end);
    }
};

}  // namespace jitney
