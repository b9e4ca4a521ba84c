// Which tiles of keys a block of attn_prefill_mma goes to. Without a mask one follows the other;
// with one, the mask's summary, of which a segment is in shared memory at a time, tells where the
// next begins that a row keeps a key of.
#pragma once

#include "attention/prefill_memory.cuh"

namespace jitney {

template <class C>
struct PrefillWalk {
    using Memory = PrefillMemory<C>;

    // Where the keys end of which is known which tiles have any that a row keeps.
    JITNEY_DEVICE static int known_end() {
        return C::mask != 0 ? *Memory::segment_end() : Memory::tile_keys()->any.end;
    }

    // Where the first tile from `from` on begins that a row keeps a key of; known_end() or a place
    // behind it where there is none.
    JITNEY_DEVICE static int next(int from) {
        if constexpr (C::mask == 0) return from;
        while (from < known_end()) {
            const int next = Memory::mask().next_in_span(from);
            if (next >= 0) return next;
            from = (from | (kMaskSpanKeys - 1)) + 1;
        }
        return from;
    }

    // The same over all segments, from that of `from` on to the keys' end: load_summary(segment)
    // brings their parts of the summary until one tells of such a tile; `end` or a place behind it
    // where none does. Nobody works on a tile of keys meanwhile.
    template <class LoadSummary>
    JITNEY_DEVICE static int search(int from, int end, const LoadSummary& load_summary) {
        bool found = false;
        while (from < end && !found) {
            const int segment = from / kMaskSegmentKeys;
            __syncthreads();  // nobody reads the summary before it any more
            load_summary(segment);
            if (threadIdx.x == 0) {
                *Memory::segment_end() = min(end, (segment + 1) * kMaskSegmentKeys);
            }
            __syncthreads();  // the summary is there
            from = next(from);
            found = from < known_end();
        }
        return from;
    }
};

}  // namespace jitney
