// How keys and values on pages come into the shared memory of attn_prefill_wgmma: in boxes of the
// copy engine, of keys that stand in one page, a lane of the producer's warp each; or, where pages
// are too small for that, row by row, by two warps that gather them. Of a page before the first key
// that a row sees, and behind the last of the request, the table is not read.
#pragma once

#include "attention/kv_rows.cuh"
#include "attention/wgmma_producer.cuh"
#include "attention/wgmma_unseen.cuh"
#include "common/cp_async.cuh"

namespace jitney {

// Pages of a tile of keys, by boxes: the keys by one warp, which brings Q too, the values by
// another. A box of keys that are not to be read is asked for outside of the pool, and so becomes
// zeros.
template <class C, bool values>
struct WgmmaBoxes {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    static constexpr int kPanels = wgmma_panels(values ? C::head_dim_v : C::head_dim);

    static constexpr int kNoPage = -1;

    const PrefillWgmmaParams& params;
    WgmmaQueries<C> queries;
    RingPlace<C::stages> ring;
    int lane;
    int key = 0;  // of the tile that comes next
    int head = 0;
    int page = kNoPage;  // of the lane's box of it
    int slot = 0;

    JITNEY_DEVICE explicit WgmmaBoxes(const PrefillWgmmaParams& p)
        : params(p), queries{p}, lane(static_cast<int>(threadIdx.x) % kWarpSize) {}

    JITNEY_DEVICE bool has_box() const { return lane * params.box_keys < C::tile_n; }

    JITNEY_DEVICE void find_box(const Note& note) {
        const AttentionParams& p = params.attention;
        const int first = key + lane * params.box_keys;
        page = kNoPage;
        if (has_box() && first < note.request.kv_len && first + params.box_keys > note.first_seen) {
            const int number = page_of(p, first);
            page = note.request.pages[number];
            slot = first - number * p.page_size;
        }
    }

    JITNEY_DEVICE void begin(const Note& note) {
        key = note.last_key();
        head = note.group / params.groups_a_kv_head;
        find_box(note);
        if (!values && lane == 0) queries.load(note);
        __syncwarp();
    }

    JITNEY_DEVICE void load_tile() {
        const SharedAddress empty =
            Memory::empty_of(values ? Memory::v_full(ring.stage) : Memory::k_full(ring.stage));
        const SharedAddress full =
            values ? Memory::v_landed(ring.stage) : Memory::k_full(ring.stage);
        const SharedAddress to = values ? Memory::v(ring.stage) : Memory::k(ring.stage);
        barrier_wait(empty, ring.phase ^ 1);
        const int bytes = params.box_keys * kPanelRowBytes;
        if (lane == 0) barrier_arrive_expecting(full, kPanels * C::tile_n * kPanelRowBytes);
        __syncwarp();  // all bytes have been announced
        if (has_box()) {
#pragma unroll
            for (int panel = 0; panel < kPanels; ++panel) {
                tensor_load(to + panel * C::tile_n * kPanelRowBytes + lane * bytes,
                            values ? &params.v : &params.k, full, panel * kPanelColumns, slot, head,
                            page);
            }
        }
        ring.advance();
    }
    JITNEY_DEVICE void load_k() {
        if (!values) load_tile();
    }
    JITNEY_DEVICE void load_v() {}
    // Values wait for nobody, and so come at once. What the table says of the tile that follows is
    // there before its stage is free.
    JITNEY_DEVICE void owe_values(const Note& note, bool more) {
        if (values) load_tile();
        if (!more) return;
        key = note.key_before(key);
        find_box(note);
    }
};

// Rows of a tile of keys, by the warps that gather them, each a run of rows; rows that no box would
// bring become zero.
template <class C>
struct WgmmaGatherer {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    static constexpr int kRows = C::tile_n / kWgmmaGatherers;  // of this warp
    static constexpr int kSets = (kRows + kWarpSize - 1) / kWarpSize;
    static_assert(kRows >= kWarpSize);

    // Where the lane's rows stand, one of each 32: a page, and a slot of it; below 0: nowhere.
    struct Rows {
        int page[kSets];
        int slot[kSets];
    };

    const PrefillWgmmaParams& params;
    int lane;
    int first_row;  // of the tile
    RingPlace<C::stages> k;
    RingPlace<C::stages> v;
    int key = 0;  // of the tile whose rows are `now`
    int kv_head = 0;
    int owed_head = 0;
    Rows now = {};
    Rows owed = {};
    SharedAddress landing = 0;  // the barrier that waits for the newest copies

    JITNEY_DEVICE WgmmaGatherer(const PrefillWgmmaParams& p, int number)
        : params(p), lane(static_cast<int>(threadIdx.x) % kWarpSize), first_row(number * kRows) {}

    JITNEY_DEVICE void find_rows(const Note& note) {
        const AttentionParams& p = params.attention;
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
            const int row = set * kWarpSize + lane;
            const int at = key + first_row + row;
            now.page[set] = 0;
            now.slot[set] = -1;
            if (row < kRows && at >= note.first_seen && at < note.request.kv_len) {
                const int number = page_of(p, at);
                now.page[set] = note.request.pages[number];
                now.slot[set] = at - number * p.page_size;
            }
        }
    }

    JITNEY_DEVICE void begin(const Note& note) {
        key = note.last_key();
        kv_head = note.group / params.groups_a_kv_head;
        find_rows(note);
    }

    // Tells that the copies before have landed.
    JITNEY_DEVICE void tell_landed() {
        fence_shared_for_async();
        __syncwarp();  // those of all lanes
        if (lane == 0) barrier_arrive(landing);
        landing = 0;
    }

    // Waits for the stage; who frees it may wait for the copies before.
    JITNEY_DEVICE void wait_for_stage(SharedAddress full, unsigned phase) {
        const SharedAddress empty = Memory::empty_of(full);
        if (__all_sync(kAllLanes, barrier_has_ended(empty, phase ^ 1))) return;
        if (landing != 0) {
            cp_async_wait<0>();
            tell_landed();
        }
        barrier_wait(empty, phase ^ 1);
    }

    // Eight lanes copy a row, a chunk of 16 bytes of each panel, four rows at a time, eight a pass.
    // Not unrolled further, since there are no registers for that.
    template <int head_dim>
    JITNEY_DEVICE void load(const void* tensor, const AttentionStrides& strides, int head,
                            SharedAddress tile, SharedAddress full, unsigned phase,
                            const Rows& rows) {
        constexpr int lanes_a_row = kPanelRowBytes / 16;
        constexpr int rows_at_a_time = kWarpSize / lanes_a_row;
        constexpr int rows_a_pass = 8;
        static_assert(kRows % rows_a_pass == 0);
        wait_for_stage(full, phase);
        const int row = lane / lanes_a_row;
        const int chunk = lane % lanes_a_row;
        SharedAddress to = tile + (first_row + row) * kPanelRowBytes;
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
            const char* const mine = static_cast<const char*>(tensor) + head * strides.head * 2 +
                                     rows.page[set] * strides.batch * 2 +
                                     max(rows.slot[set], 0) * strides.row * 2;
            const unsigned valid = __ballot_sync(kAllLanes, rows.slot[set] >= 0) >> row;
            constexpr int last_rows = kRows - (kSets - 1) * kWarpSize;
#pragma unroll 1
            for (int pass = 0; pass < (set < kSets - 1 ? kWarpSize : last_rows);
                 pass += rows_a_pass) {
#pragma unroll
                for (int at = 0; at < rows_a_pass; at += rows_at_a_time) {
                    const char* const from = address_of_lane(mine, pass + at + row) + chunk * 16;
                    const bool reads = (valid >> (pass + at) & 1u) != 0;
#pragma unroll
                    for (int panel = 0; panel < wgmma_panels(head_dim); ++panel) {
                        cp_async_16(to + (panel * C::tile_n + at) * kPanelRowBytes +
                                        (chunk ^ row ^ at) * 16,
                                    from + panel * kPanelRowBytes,
                                    reads && panel * kPanelColumns + chunk * 8 < head_dim);
                    }
                }
                to += rows_a_pass * kPanelRowBytes;
            }
        }
        cp_async_commit();
        if (landing != 0) {
            cp_async_wait<1>();
            tell_landed();
        }
        landing = full;
    }
    JITNEY_DEVICE void load_k() {
        load<C::head_dim>(params.attention.k, params.attention.k_strides, kv_head,
                          Memory::k(k.stage), Memory::k_full(k.stage), k.phase, now);
        k.advance();
    }
    JITNEY_DEVICE void load_v() {
        load<C::head_dim_v>(params.attention.v, params.attention.v_strides, owed_head,
                            Memory::v(v.stage), Memory::v_full(v.stage), v.phase, owed);
        v.advance();
    }
    JITNEY_DEVICE void owe_values(const Note& note, bool more) {
        owed = now;
        owed_head = kv_head;
        if constexpr (C::mask != 0) {
            const SeenKeys<C::tile_n> seen = seen_keys<C>(params.attention, note, key);
#pragma unroll
            for (int set = 0; set < kSets; ++set) {
                if (!seen.has(first_row + set * kWarpSize + lane)) owed.slot[set] = -1;
            }
        }
        if (!more) return;
        key = note.key_before(key);
        find_rows(note);
    }

    JITNEY_DEVICE void end() {
        if (landing == 0) return;
        cp_async_wait<0>();
        tell_landed();
    }
};

}  // namespace jitney
