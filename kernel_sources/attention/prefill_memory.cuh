// What a block of attn_prefill_mma keeps in shared memory beside its tiles of Q, K and V.
//
// Notes: what the loop needs now and then lies in the 16 bytes of padding behind the rows of Q and
// K, because the accumulators leave no registers for it. What only some specializations need lies
// behind the tiles.
#pragma once

#include "attention/logits.cuh"
#include "attention/mask_tile.cuh"

namespace jitney {

template <class C>
struct PrefillMemory {
    static constexpr int kRowBytes = mma_row_bytes(C::head_dim);

    // The notes behind the rows of Q: what each row sees.
    struct RowNote {
        KeyRange keys;
        const unsigned* mask;  // its first word
    };
    JITNEY_DEVICE static RowNote* row_note(int row) { return padding<RowNote>(row); }

    // The notes behind the rows of K: the keys of the tile of rows,
    JITNEY_DEVICE static TileKeys* tile_keys() { return padding<TileKeys>(C::tile_m); }
    // where this head's keys and values stand,
    struct KvRows {
        const char* first;
        long long row_bytes;
    };
    JITNEY_DEVICE static KvRows* k_rows() { return padding<KvRows>(C::tile_m + 1); }
    JITNEY_DEVICE static KvRows* v_rows() { return padding<KvRows>(C::tile_m + 2); }
    // and where the keys end whose part of the mask's summary is there.
    JITNEY_DEVICE static int* segment_end() { return padding<int>(C::tile_m + 3); }

    template <class Note>
    JITNEY_DEVICE static Note* padding(int row) {
        static_assert(sizeof(Note) <= 16);
        return reinterpret_cast<Note*>(shared_memory() + row * kRowBytes +
                                       mma_dim(C::head_dim) * 2);
    }

    // Behind the tiles: the pages of the keys of two tiles in turn,
    static constexpr PrefillMmaLayout kLayout =
        prefill_mma_layout(C::head_dim, C::tile_m, C::tile_n, C::kv == kPagedKv,
                           row_logits_bytes(kEditsLogits<C>, kCallerEdits<C>), C::mask != 0);
    JITNEY_DEVICE static int* pages(int turn) {
        return reinterpret_cast<int*>(shared_memory() + kLayout.pages) + turn * C::tile_n;
    }
    // what the logits of each row are edited by,
    JITNEY_DEVICE static RowLogits<C>* logits(int row) {
        return reinterpret_cast<RowLogits<C>*>(shared_memory() + kLayout.logits) + row;
    }
    // a row's weights, and a number of each side,
    static constexpr int kWeightRowBytes = prefill_mma_weight_row_bytes(C::tile_n);
    JITNEY_DEVICE static char* weights(int row) {
        return shared_memory() + kLayout.weights + row * kWeightRowBytes;
    }
    JITNEY_DEVICE static float* number(int of_side, int row) {
        return reinterpret_cast<float*>(shared_memory() + kLayout.numbers) + of_side * C::tile_m +
               row;
    }
    // and the mask.
    JITNEY_DEVICE static MaskTile<C> mask() { return {shared_memory() + kLayout.mask}; }
};

}  // namespace jitney
