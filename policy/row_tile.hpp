// How kernels of rows spread a row over the threads that share it.
#pragma once

#include "policy/device_facts.hpp"

namespace jitney::policy {

struct RowTile {
    int threads = 0;  // of a row: a power of two up to 32, or some warps
    int vectors = 0;  // that each of them holds; 0: none, all are read anew in each pass
};

// Of a row of so many vectors, of which a thread holds `wanted` where a block has threads enough,
// else up to `most`.
RowTile row_tile(int vectors, int wanted, int most) noexcept;

// The same tile where a block has the memory for what its threads hold, else one that holds none.
RowTile tile_with_room(const RowTile& tile, int width, int result,
                       const DeviceFacts& facts) noexcept;

// Elements that are moved at once: 16 bytes, or one where rows don't begin and end at multiples of
// them.
int row_width(int format, int d, bool aligned) noexcept;

}  // namespace jitney::policy
