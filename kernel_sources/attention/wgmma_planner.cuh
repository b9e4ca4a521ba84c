// Which tiles of rows a block of attn_prefill_wgmma works on: one of its threads finds out what
// comes next, and leaves notes of it in shared memory for the others.
#pragma once

#include "attention/masking.cuh"
#include "attention/wgmma_memory.cuh"

namespace jitney {

template <class C>
struct WgmmaPlanner {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    const PrefillWgmmaParams& params;
    RingPlace<kWgmmaNotes> notes;
    RingPlace<1> taken;

    JITNEY_DEVICE int tiles() const {
        const AttentionParams& p = params.attention;
        return p.row_tiles * p.kv_heads * (C::queries == kPackedQueries ? 1 : p.batch);
    }

    // The rows of tile number `number` in the order in which tiles are taken; false: it has none.
    JITNEY_DEVICE bool find_rows(Note& note, int number) const {
        const AttentionParams& p = params.attention;
        int batch;
        int row_tile;
        if constexpr (C::queries == kPackedQueries) {
            const int slot = number / p.kv_heads;
            note.group = number - slot * p.kv_heads;
            batch = p.tile_batch[slot];
            if (batch < 0) return false;
            row_tile = p.tile_index[slot];
        } else {
            const int heads = p.batch * p.kv_heads;
            int head;
            if constexpr (C::causal != 0 || C::mask != 0) {
                // The longest tiles of some heads first, then those of the next.
                const int band = number / (params.heads_at_a_time * p.row_tiles);
                const int first_head = band * params.heads_at_a_time;
                const int heads_here = min(params.heads_at_a_time, heads - first_head);
                const int in_band = number - first_head * p.row_tiles;
                const int turn = in_band / heads_here;
                head = first_head + in_band - turn * heads_here;
                row_tile = p.row_tiles - 1 - turn;
            } else {
                head = number / p.row_tiles;
                row_tile = number - head * p.row_tiles;
            }
            batch = head / p.kv_heads;
            note.group = head - batch * p.kv_heads;
        }
        note.request = request_of<C::kv, C::queries>(p, batch);
        note.first_row = row_tile * C::tile_m;
        return true;
    }

    // The keys of the rows. Rows that see none get a tile of keys all the same, of which nothing
    // counts. Steps whose keys no row of a consumer sees are left out at its beginning: at most
    // two, which is as far as K may run ahead of V.
    JITNEY_DEVICE void find_keys(Note& note) const {
        static_assert(C::tile_m - kWarpgroupRows <= 2 * C::tile_n);
        const AttentionParams& p = params.attention;
        const int last_row = note.request.q_len * p.group - 1;
        const auto keys_of = [&](int first, int rows) {
            return tile_keys<C>(p, note.request, min(first, last_row),
                                min(first + rows - 1, last_row));
        };
        const auto tiles_to = [&](int end) {
            return max((end - note.first_key + C::tile_n - 1) / C::tile_n, 1);
        };
        const KeyRange any = keys_of(note.first_row, C::tile_m).any;
        note.first_key = any.first;
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

    // Writes the next note.
    template <class Write>
    JITNEY_DEVICE void leave(const Write& write) {
        const SharedAddress full = Memory::note_full(notes.stage);
        barrier_wait(Memory::empty_of(full), notes.phase ^ 1);
        write(*Memory::note(notes.stage));
        barrier_arrive(full);
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
            Note note;
            if (find_rows(note, number)) {
                find_keys(note);
                leave([&note](Note& to) { to = note; });
                barrier_wait(Memory::note_taken(), taken.phase);
                taken.advance();
            }
            number = count;
            if (blocks < count) {
                number = blocks + static_cast<int>(atomicInc(params.next_tile,
                                                             static_cast<unsigned>(count) - 1));
            }
        }
        leave([](Note& to) { to.key_tiles = 0; });
    }
};

}  // namespace jitney
