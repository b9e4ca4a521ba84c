// Values of keys that no row of a tile of rows keeps, of attn_prefill_wgmma with a mask: they may
// be anything, and are made zeros before the consumers read them.
#pragma once

#include "attention/mask_tile.cuh"
#include "attention/masking.cuh"
#include "attention/wgmma_memory.cuh"

namespace jitney {

// The words of a tile of keys in a row of the mask's bits. Behind the request's last key there may
// be none.
template <int words>
JITNEY_DEVICE void load_mask_words(unsigned (&bits)[words], const MaskBits& mask,
                                   const unsigned* row, int key, int kv_len) {
    const int group = key / kMaskGroupKeys;
    const int stride = mask_band_stride(mask.rows);
#pragma unroll
    for (int word = 0; word < words; ++word) {
        bits[word] = key + word * kMaskGroupKeys < kv_len
                         ? row[static_cast<long long>(group + word) * stride]
                         : 0u;
    }
}

// The keys of the tile at `key` that a row of the note's keeps, of those that it sees. By a warp.
template <class C>
JITNEY_DEVICE SeenKeys<C::tile_n> seen_keys(const AttentionParams& params, const WgmmaNote<C>& note,
                                            int key) {
    static_assert(C::tile_n % kMaskGroupKeys == 0);
    const MaskBits& mask = params.mask_bits;
    const Request& request = note.request;
    bool whole = true;
#pragma unroll
    for (int consumer = 0; consumer < WgmmaNote<C>::kConsumers; ++consumer)
        whole = whole && !leaves_range<C>(note.every[consumer], key, C::tile_n);
    const bool one_row = whole && mask.rows == 1 && mask.heads == 1;
    SeenKeys<C::tile_n> seen = {};
    // From some rows on there is mostly nothing more to find.
    bool all = false;
#pragma unroll 1
    for (int first = 0; first < C::tile_m && !all; first += kWarpSize) {
        const int row = note.first_row + first + static_cast<int>(threadIdx.x) % kWarpSize;
        const PackedRow packed =
            packed_row(params, request, note.group, min(row, note.last_row(params.group)));
        unsigned bits[seen.kWords];
        load_mask_words(bits, mask, mask_row(mask, request.batch, packed.head, packed.position),
                        key, request.kv_len);
        const KeyRange keys = whole ? KeyRange{} : row_keys<C>(params, request, packed);
        all = true;
#pragma unroll
        for (int word = 0; word < seen.kWords; ++word) {
            if (!whole) bits[word] &= bits_within(keys, key + word * kMaskGroupKeys);
            seen.words[word] |= warp_or(bits[word]);
            all = all && seen.words[word] == kAllLanes;
        }
        all = all || one_row;
    }
    return seen;
}

// The warp that looks at what the copy engine brought.
template <class C>
struct WgmmaCleaner {
    using Memory = WgmmaMemory<C>;
    using Note = WgmmaNote<C>;

    const PrefillWgmmaParams& params;
    RingPlace<kWgmmaNotes> notes;
    RingPlace<C::stages> v;

    JITNEY_DEVICE void clear(const SeenKeys<C::tile_n>& seen) const {
        constexpr int chunks = kPanelRowBytes / 16;
        constexpr int panels = wgmma_panels(C::head_dim_v);
        static_assert(panels * chunks <= kWarpSize);
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
        char* const values = shared_memory() + Memory::kLayout.v + v.stage * Memory::kVBytes +
                             (lane / chunks * C::tile_n) * kPanelRowBytes + lane % chunks * 16;
#pragma unroll
        for (int word = 0; word < seen.kWords; ++word) {
#pragma unroll 1
            for (unsigned unseen = ~seen.words[word]; unseen != 0; unseen &= unseen - 1) {
                const int row = word * 32 + __ffs(static_cast<int>(unseen)) - 1;
                if (lane < panels * chunks) {
                    *reinterpret_cast<uint4*>(values + row * kPanelRowBytes) = uint4{};
                }
            }
        }
    }

    JITNEY_DEVICE void run() {
        for (;;) {
            barrier_wait(Memory::note_full(notes.stage), notes.phase);
            const Note& note = *Memory::note(notes.stage);
            const int steps = note.key_tiles;
            if (steps == 0) break;
            notes.advance();
            int key = note.last_key();
            for (int step = 0; step < steps; ++step) {
                if (step > 0) key = note.key_before(key);
                const SeenKeys<C::tile_n> seen = seen_keys<C>(params.attention, note, key);
                barrier_wait(Memory::v_landed(v.stage), v.phase);
                clear(seen);
                fence_shared_for_async();
                __syncwarp();  // all lanes have cleared theirs
                if (threadIdx.x % kWarpSize == 0) barrier_arrive(Memory::v_full(v.stage));
                v.advance();
            }
        }
    }
};

}  // namespace jitney
