// The thread of attn_prefill_wgmma that has tiles of Q, K and V brought into shared memory by the
// copy engine; keys on pages come by wgmma_pages.cuh.
#pragma once

#include "attention/wgmma_memory.cuh"
#include "common/tensor_copy.cuh"

namespace jitney {

// Brings all tiles of all tiles of rows, in the order in which they are needed: values come one
// step behind the keys, also from one tile of rows to the next. Copies says how: after begin(note)
// load_k() brings the keys of its first tile, owe_values(note, more) goes on to the next, if there
// are more, and load_v() brings the values of the tile that was gone from last.
template <class C, class Copies>
JITNEY_DEVICE void bring_tiles(Copies& copies) {
    using Memory = WgmmaMemory<C>;
    RingPlace<kWgmmaNotes> notes;
    bool owes_values = false;
    for (;;) {
        barrier_wait(Memory::note_full(notes.stage), notes.phase);
        const WgmmaNote<C>& note = *Memory::note(notes.stage);
        int steps = note.key_tiles;
        if (steps == 0) break;
        notes.advance();
        copies.begin(note);
        for (; steps > 0; --steps) {
            copies.load_k();
            if (owes_values) copies.load_v();
            copies.owe_values(note, steps > 1);
            owes_values = true;
        }
    }
    if (owes_values) copies.load_v();
}

// Q alone.
template <class C>
struct WgmmaQueries {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    const PrefillWgmmaParams& params;
    RingPlace<C::q_stages> q;

    JITNEY_DEVICE void load(const Note& note) {
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
        barrier_arrive(Memory::note_taken());
    }

    // For bring_tiles, where others bring K and V.
    JITNEY_DEVICE void begin(const Note& note) {
        load(note);
    }
    JITNEY_DEVICE void load_k() {}
    JITNEY_DEVICE void load_v() {}
    JITNEY_DEVICE void owe_values(const Note&, bool) {}
};

template <class C>
struct WgmmaProducer {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    // Where a tile of keys stands in the tensors.
    struct Keys {
        int key;
        int head;
        int batch;
    };

    const PrefillWgmmaParams& params;
    WgmmaQueries<C> queries;
    RingPlace<C::stages> k;
    RingPlace<C::stages> v;
    Keys keys;
    Keys owed;

    JITNEY_DEVICE explicit WgmmaProducer(const PrefillWgmmaParams& p)
        : params(p), queries{p}, keys{}, owed{} {}

    JITNEY_DEVICE void begin(const Note& note) {
        queries.load(note);
        keys = {note.request.first_key + note.last_key(), note.group / params.groups_a_kv_head,
                params.attention.kv_lengths == kKvLenIndptr ? 0 : note.request.batch};
    }

    // A tile of K or of V into a stage of its ring.
    template <int panels>
    JITNEY_DEVICE static void load(const TensorMapBits* map, SharedAddress to, SharedAddress empty,
                                   SharedAddress full, unsigned phase, const Keys& from) {
        barrier_wait(empty, phase ^ 1);
        barrier_arrive_expecting(full, panels * C::tile_n * kPanelRowBytes);
#pragma unroll
        for (int panel = 0; panel < panels; ++panel) {
            tensor_load(to + panel * C::tile_n * kPanelRowBytes, map, full, panel * kPanelColumns,
                        from.key, from.head, from.batch);
        }
    }
    JITNEY_DEVICE void load_k() {
        const SharedAddress full = Memory::k_full(k.stage);
        load<wgmma_panels(C::head_dim)>(&params.k, Memory::k(k.stage), Memory::empty_of(full), full,
                                        k.phase, keys);
        k.advance();
    }
    JITNEY_DEVICE void load_v() {
        load<wgmma_panels(C::head_dim_v)>(&params.v, Memory::v(v.stage),
                                          Memory::empty_of(Memory::v_full(v.stage)),
                                          Memory::v_landed(v.stage), v.phase, owed);
        v.advance();
    }
    JITNEY_DEVICE void owe_values(const Note& note, bool more) {
        owed = keys;
        const int first = note.request.first_key;
        if (more) keys.key = first + note.key_before(keys.key - first);
    }
};

}  // namespace jitney
