// The thread of attn_prefill_wgmma that has the tiles of Q, K and V brought into shared memory, and
// finds out which tile of rows comes next.
#pragma once

#include "attention/wgmma_memory.cuh"
#include "attention/wgmma_schedule.cuh"
#include "common/tensor_copy.cuh"

namespace jitney {

template <class C>
struct WgmmaProducer {
    using Memory = WgmmaMemory<C>;
    using Tile = WgmmaTile<C>;

    const PrefillWgmmaParams& params;
    RingPlace<1> q;
    RingPlace<C::stages> k;
    RingPlace<C::stages> v;
    RingPlace<2> numbers;

    // Copies a box a panel; `panel` gives the coordinates.
    template <int panels, class Load>
    JITNEY_DEVICE static void load_panels(SharedAddress to, int panel_bytes, const Load& load) {
#pragma unroll
        for (int panel = 0; panel < panels; ++panel)
            load(to + panel * panel_bytes, panel * kPanelColumns);
    }

    JITNEY_DEVICE void load_q(const Tile& tile) {
        barrier_wait(Memory::q_empty(), q.phase ^ 1);
        barrier_arrive_expecting(Memory::q_full(), Memory::kQBytes);
        const int position =
            tile.request.first_query + tile.first_row / params.attention.group;
        const int batch = C::queries == kPackedQueries ? 0 : tile.request.batch;
        load_panels<wgmma_panels(C::head_dim)>(
            Memory::q(), C::tile_m * kPanelRowBytes, [&](SharedAddress to, int column) {
                tensor_load(to, &params.q, Memory::q_full(), column, 0, position, tile.group,
                            batch);
            });
        q.advance();
    }

    // A tile of K or of V into a stage of its ring.
    template <int panels>
    JITNEY_DEVICE void load_keys(const TensorMapBits* map, SharedAddress to, SharedAddress full,
                                 const Tile& tile, int step) const {
        const int key = tile.request.first_key + tile.key_of(step);
        const int head = tile.group / params.groups_a_kv_head;
        const int batch =
            params.attention.kv_lengths == kKvLenIndptr ? 0 : tile.request.batch;
        load_panels<panels>(to, C::tile_n * kPanelRowBytes, [&](SharedAddress panel, int column) {
            tensor_load(panel, map, full, column, key, head, batch);
        });
    }
    JITNEY_DEVICE void load_k(const Tile& tile, int step) {
        barrier_wait(Memory::k_empty(k.stage), k.phase ^ 1);
        barrier_arrive_expecting(Memory::k_full(k.stage), Memory::kKBytes);
        load_keys<wgmma_panels(C::head_dim)>(&params.k, Memory::k(k.stage),
                                             Memory::k_full(k.stage), tile, step);
        k.advance();
    }
    JITNEY_DEVICE void load_v(const Tile& tile, int step) {
        barrier_wait(Memory::v_empty(v.stage), v.phase ^ 1);
        barrier_arrive_expecting(Memory::v_full(v.stage), Memory::kVBytes);
        load_keys<wgmma_panels(C::head_dim_v)>(&params.v, Memory::v(v.stage),
                                               Memory::v_full(v.stage), tile, step);
        v.advance();
    }

    // Values come one step behind the keys, as they are needed.
    JITNEY_DEVICE void load(const Tile& tile) {
        if (tile.key_tiles == 0) return;
        load_q(tile);
        load_k(tile, 0);
        for (int step = 1; step < tile.key_tiles; ++step) {
            load_k(tile, step);
            load_v(tile, step - 1);
        }
        load_v(tile, tile.key_tiles - 1);
    }

    JITNEY_DEVICE void tell_consumers(int number) {
        barrier_wait(Memory::number_empty(numbers.stage), numbers.phase ^ 1);
        *Memory::tile_number(numbers.stage) = number;
        barrier_arrive(Memory::number_full(numbers.stage));
        numbers.advance();
    }

    // Every block starts with the tile of its own number. Where there are more tiles than blocks,
    // it asks the counter for another until there is none left: as often, in all, as there are
    // tiles, so that the counter comes back to zero.
    JITNEY_DEVICE void run() {
        const int tiles = wgmma_tiles<C>(params.attention);
        const int blocks = static_cast<int>(gridDim.x);
        int number = static_cast<int>(blockIdx.x);
        while (number < tiles) {
            int next = tiles;
            if (blocks < tiles) {
                next = blocks + static_cast<int>(atomicInc(params.next_tile,
                                                           static_cast<unsigned>(tiles) - 1));
            }
            load(wgmma_tile<C>(params, number));
            tell_consumers(next);
            number = next;
        }
    }
};

}  // namespace jitney
