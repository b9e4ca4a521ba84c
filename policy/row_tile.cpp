#include "policy/row_tile.hpp"

#include <algorithm>
#include <bit>

#include "core/arithmetic.hpp"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/norm/row_shape.h"

namespace jitney::policy {
namespace {

constexpr int kWarp = 32;
constexpr int kMostThreads = 1024;

// Up to so many vectors a thread a row is one warp's, and needs no barrier.
constexpr int kMostOfAWarp = 4;

// How many of `size` it takes.
int up_to(int count, int size) {
    return static_cast<int>(ceil_div(count, size));
}

}  // namespace

RowTile row_tile(int vectors, int wanted, int most) noexcept {
    if (vectors <= kWarp * (wanted == 1 ? 1 : std::min(most, kMostOfAWarp))) {
        const auto some = static_cast<unsigned>(up_to(vectors, wanted));
        const int threads = std::min(static_cast<int>(std::bit_ceil(some)), kWarp);
        return {threads, up_to(vectors, threads)};
    }
    const int held = std::max(wanted, up_to(vectors, kMostThreads));
    if (held > most) return {kMostThreads, 0};
    return {kWarp * up_to(up_to(vectors, held), kWarp), held};
}

RowTile tile_with_room(const RowTile& tile, int width, int result,
                       const DeviceFacts& facts) noexcept {
    const int bytes = row_shared_bytes(tile.threads, tile.vectors, width, result);
    return {tile.threads, bytes <= facts.shared_bytes_per_block ? tile.vectors : 0};
}

int row_width(int format, int d, bool aligned) noexcept {
    const int width = format == kFp32 ? 4 : 8;
    return aligned && d % width == 0 ? width : 1;
}

}  // namespace jitney::policy
