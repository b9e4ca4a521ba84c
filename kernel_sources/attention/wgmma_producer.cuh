// The thread of attn_prefill_wgmma that has the tiles of Q, K and V brought into shared memory.
#pragma once

#include "attention/wgmma_memory.cuh"
#include "common/tensor_copy.cuh"

namespace jitney {

template <class C>
struct WgmmaProducer {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    const PrefillWgmmaParams& params;
    RingPlace<C::q_stages> q;
    RingPlace<C::stages> k;
    RingPlace<C::stages> v;
    RingPlace<kWgmmaNotes> notes;

    // Where a tile of keys stands in the tensors.
    struct Keys {
        int key;
        int head;
        int batch;
    };
    JITNEY_DEVICE Keys first_keys(const Note& note) const {
        return {note.request.first_key + note.key_of(0), note.group / params.groups_a_kv_head,
                params.attention.kv_lengths == kKvLenIndptr ? 0 : note.request.batch};
    }

    JITNEY_DEVICE void load_q(const Note& note) {
        const int batch = C::queries == kPackedQueries ? 0 : note.request.batch;
        const int positions = kWarpgroupRows / params.attention.group;
        int position = note.request.first_query + note.first_row / params.attention.group;
        for (int consumer = 0; consumer < Memory::kConsumers; ++consumer) {
            const SharedAddress full = Memory::q_full(q.stage, consumer);
            barrier_wait(Memory::empty_of(full), q.phase ^ 1);
            barrier_arrive_expecting(full, Memory::kQBytes / Memory::kConsumers);
#pragma unroll
            for (int panel = 0; panel < wgmma_panels(C::head_dim); ++panel) {
                tensor_load(Memory::q(q.stage, consumer) + panel * C::tile_m * kPanelRowBytes,
                            &params.q, full, panel * kPanelColumns, 0, position, note.group, batch);
            }
            position += positions;
        }
        q.advance();
    }

    // A tile of K or of V into a stage of its ring.
    template <int panels>
    JITNEY_DEVICE static void load_keys(const TensorMapBits* map, SharedAddress to,
                                        SharedAddress full, unsigned phase, const Keys& keys) {
        barrier_wait(Memory::empty_of(full), phase ^ 1);
        barrier_arrive_expecting(full, panels * C::tile_n * kPanelRowBytes);
#pragma unroll
        for (int panel = 0; panel < panels; ++panel) {
            tensor_load(to + panel * C::tile_n * kPanelRowBytes, map, full, panel * kPanelColumns,
                        keys.key, keys.head, keys.batch);
        }
    }
    JITNEY_DEVICE void load_k(const Keys& keys) {
        load_keys<wgmma_panels(C::head_dim)>(&params.k, Memory::k(k.stage), Memory::k_full(k.stage),
                                             k.phase, keys);
        k.advance();
    }
    JITNEY_DEVICE void load_v(const Keys& keys) {
        load_keys<wgmma_panels(C::head_dim_v)>(&params.v, Memory::v(v.stage),
                                               Memory::v_full(v.stage), v.phase, keys);
        v.advance();
    }

    // Values come one step behind the keys, as they are needed, also from one tile of rows to the
    // next.
    JITNEY_DEVICE void run() {
        bool owes_values = false;
        Keys owed = {};
        for (;;) {
            barrier_wait(Memory::note_full(notes.stage), notes.phase);
            const Note& note = *Memory::note(notes.stage);
            int steps = note.key_tiles;
            if (steps == 0) break;
            load_q(note);
            Keys keys = first_keys(note);
            barrier_arrive(Memory::note_taken());
            notes.advance();
            for (; steps > 0; --steps) {
                load_k(keys);
                if (owes_values) load_v(owed);
                owes_values = true;
                owed = keys;
                keys.key -= C::tile_n;
            }
        }
        if (owes_values) load_v(owed);
    }
};

}  // namespace jitney
