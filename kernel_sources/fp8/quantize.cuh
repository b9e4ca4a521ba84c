// fp8_quantize: x * multiplier as codes of E4M3 or E5M2, row by row, transposed or both, and the
// largest |x|, in one pass over x.
#pragma once

#include "common/amax.cuh"
#include "common/grid_dependency.cuh"
#include "common/vector.cuh"
#include "fp8/quantize_params.h"
#include "fp8/quantize_piece.cuh"
#include "fp8/scale.h"
#include "fp8/state.h"

namespace jitney {

template <class C>
struct Fp8Quantize {
    using Piece = Fp8Piece<C::format, C::out, C::software != 0>;
    using T = typename Piece::T;
    using Codes = typename Piece::Codes;
    static constexpr int kRows = kFp8ThreadRows;
    static constexpr int kCols = kFp8ThreadCols;
    static constexpr bool kWritesRows = (C::codes & kRowCodes) != 0;
    static constexpr bool kTransposes = (C::codes & kTransposedCodes) != 0;
    static constexpr int kTransposedWords = kFp8TransposeRows / 4;  // of a column of the tile

    const Fp8QuantizeParams& params;

    // Where a tile begins.
    struct Corner {
        long long row;
        long long col;
    };

    // The thread's part of a tile: kRows rows from `row` on, of kCols elements from `col` on.
    struct Place {
        long long row;
        long long col;
        bool whole;  // all of it lies in the matrix
    };

    JITNEY_DEVICE int log2_across() const {
        return kTransposes ? kFp8TransposeLog2Across : params.log2_across;
    }
    JITNEY_DEVICE int column_group(int thread) const { return thread & ((1 << log2_across()) - 1); }
    JITNEY_DEVICE int row_group(int thread) const { return thread >> log2_across(); }

    JITNEY_DEVICE long long width(long long row) const {
        return row == params.rows - 1 ? params.last_cols : params.cols;
    }

    JITNEY_DEVICE Corner corner_of(int tile) const {
        int down = tile;
        int across = 0;
        if (params.tiles_across != 1) {  // no division where rows were cut anew
            down = tile / params.tiles_across;
            across = tile - down * params.tiles_across;
        }
        return {static_cast<long long>(down) * kRows * (kFp8QuantizeThreads >> log2_across()),
                static_cast<long long>(across) * kCols << log2_across()};
    }

    JITNEY_DEVICE Place place_of(const Corner& corner, int thread) const {
        Place place;
        place.row = corner.row + row_group(thread) * kRows;
        place.col = corner.col + column_group(thread) * kCols;
        const long long last = place.row + kRows - 1;
        place.whole = last < params.rows && place.col + kCols <= width(last);
        return place;
    }

    // How many elements of the place's row `i` lie in the matrix.
    JITNEY_DEVICE auto ends_of(const Place& place) const {
        return [this, &place](int i) {
            const long long row = place.row + i;
            return row < params.rows ? width(row) - place.col : 0;
        };
    }

    template <bool wide>
    JITNEY_DEVICE void load(const Place& place, Vector<T, kCols> (&x)[kRows]) const {
        const T* from = static_cast<const T*>(params.x) + place.row * params.x_stride + place.col;
        Piece::template load<wide>(from, params.x_stride, ends_of(place), x);
    }

    JITNEY_DEVICE void store_rows(const Place& place, const Codes (&codes)[kRows]) const {
        unsigned char* to = params.codes + place.row * params.codes_stride + place.col;
        Piece::store(to, params.codes_stride, place.whole && params.wide_codes != 0, ends_of(place),
                     codes);
    }

    // The tile in shared memory: a column's codes are neighbours, in chunks of 16 bytes that lie in
    // an order of the column's own, so that neither side meets bank conflicts.
    JITNEY_DEVICE static unsigned* column_chunk(int column, int chunk) {
        return reinterpret_cast<unsigned*>(shared_memory()) + column * kTransposedWords +
               (chunk ^ (column / kCols & 7)) * 4;
    }

    // Four rows of four codes as four columns of four.
    JITNEY_DEVICE void keep_transposed(int thread, const Codes (&codes)[kRows]) const {
        const int group = row_group(thread);
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            const unsigned a = codes[0].items[word];
            const unsigned b = codes[1].items[word];
            const unsigned c = codes[2].items[word];
            const unsigned d = codes[3].items[word];
            const unsigned ab_low = __byte_perm(a, b, 0x5140);
            const unsigned cd_low = __byte_perm(c, d, 0x5140);
            const unsigned ab_high = __byte_perm(a, b, 0x7362);
            const unsigned cd_high = __byte_perm(c, d, 0x7362);
            const unsigned columns[4] = {
                __byte_perm(ab_low, cd_low, 0x5410), __byte_perm(ab_low, cd_low, 0x7632),
                __byte_perm(ab_high, cd_high, 0x5410), __byte_perm(ab_high, cd_high, 0x7632)};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int column = column_group(thread) * kCols + 4 * word + j;
                column_chunk(column, group / 4)[group % 4] = columns[j];
            }
        }
    }

    JITNEY_DEVICE void store_transposed(const Corner& corner, int thread) const {
        constexpr int chunks = kFp8TransposeRows / 16;  // of a column
#pragma unroll
        for (int i = 0; i < kFp8TransposeCols * chunks / kFp8QuantizeThreads; ++i) {
            const int index = thread + i * kFp8QuantizeThreads;
            const int column = index / chunks;
            const int chunk = index % chunks;
            const long long row = corner.row + 16 * chunk;
            if (corner.col + column >= params.cols || row >= params.rows) continue;
            unsigned char* to =
                params.transposed + (corner.col + column) * params.transposed_stride + row;
            const auto codes = load_vector<4>(column_chunk(column, chunk));
            if (row + 16 <= params.rows && params.wide_transposed != 0) {
                store_vector(reinterpret_cast<unsigned*>(to), codes);
                continue;
            }
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                if (row + j < params.rows)
                    to[j] = static_cast<unsigned char>(codes.items[j / 4] >> 8 * (j % 4));
            }
        }
    }

    // Codes of the thread's part of a tile, and the largest magnitude in it. What has its codes
    // needs no registers any more, whichever way it came.
    template <bool wide>
    JITNEY_DEVICE void take(const Place& place, float multiplier, Codes (&codes)[kRows],
                            unsigned& largest) const {
        Vector<T, kCols> x[kRows];
        load<wide>(place, x);
        if constexpr (C::amax != 0) {
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                largest = max(largest, Piece::largest_of(x[i]));
        }
        if constexpr (C::codes != kNoCodes) {
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                codes[i] = Piece::codes_of(x[i], multiplier);
        }
    }

    JITNEY_DEVICE static unsigned* warp_maxima() {
        return reinterpret_cast<unsigned*>(shared_memory() +
                                           fp8_quantize_shared_bytes(kTransposes, false));
    }

    // The first thread merges the block's amax with those of the others. True for the last block's,
    // which has it then.
    JITNEY_DEVICE bool has_all(float& amax) const {
        unsigned largest = max_of_warps<kFp8QuantizeThreads>(warp_maxima());
        if (!merge_amax(params.counters, largest, gridDim.x, largest)) return false;
        amax = __uint_as_float(largest);
        if (params.amax != nullptr) *params.amax = amax;
        return true;
    }

    JITNEY_DEVICE void merge() const {
        float amax;
        if (threadIdx.x != 0 || !has_all(amax) || params.new_multiplier == nullptr) return;
        const float multiplier =
            dynamic_fp8_multiplier(amax, params.largest, params.power_of_two != 0);
        *params.new_multiplier = multiplier;
        if (params.scale != nullptr) *params.scale = fp8_scale(multiplier);
    }

    JITNEY_DEVICE float multiplier() const {
        if (params.multiplier == nullptr) return 1.0f;
        const float given = *params.multiplier;
        return params.by_scale != 0 ? 1.0f / given : given;
    }

    // Where the state has no history: every block has cast its tiles as they are, which is right
    // where amax is not usable. Else the block that comes last, when all have stored their codes,
    // makes the multiplier of amax, and is told to cast all of x anew. That happens in a tensor's
    // first step alone; each later one reads x once.
    JITNEY_DEVICE bool begins_anew() const {
        unsigned* const anew = warp_maxima();
        __syncthreads();  // the block's codes are stored
        if (threadIdx.x == 0) {
            float amax = 0.0f;
            const bool last = has_all(amax);
            *anew = last && is_usable_amax(amax) ? 1u : 0u;
            if (last) {
                const float multiplier = dynamic_fp8_multiplier(amax, params.largest);
                params.state[kFp8StateScale] = fp8_scale(multiplier);
                if (*anew != 0) params.state[kFp8StateMultiplier] = multiplier;
            }
        }
        __syncthreads();  // all know it, and the multiplier is there
        return *anew != 0;
    }

    // On the block's last tile amax is merged before codes are stored: the atomics are on their way
    // meanwhile. True where the state has no history, for which the caller merges it.
    JITNEY_DEVICE bool do_tile(const Corner& corner, unsigned& largest, bool last) const {
        // Read anew for each tile: what is derived from it would take more registers from tile to
        // tile than a block can spare.
        const int thread = reread_thread_index();
        const Place place = place_of(corner, thread);
        float by = C::codes != kNoCodes ? multiplier() : 1.0f;  // comes while x does
        bool is_new = false;
        if constexpr (C::codes != kNoCodes && C::amax != 0) {
            is_new = params.state != nullptr && by == 0.0f;
            by = is_new ? 1.0f : by;
        }
        Codes codes[kRows];
        if (place.whole && params.wide_x != 0) {
            take<true>(place, by, codes, largest);
        } else {
            take<false>(place, by, codes, largest);
        }
        if constexpr (C::amax != 0) {
            if (last) keep_warp_max(largest, warp_maxima());
            if (last && !kTransposes && !is_new) {
                __syncthreads();  // the warps' maxima are there
                merge();
            }
        }
        if constexpr (C::codes != kNoCodes) {
            if constexpr (kWritesRows) store_rows(place, codes);
            if constexpr (kTransposes) {
                keep_transposed(thread, codes);
                __syncthreads();  // the tile is there, and so are the warps' maxima
                if (C::amax != 0 && last && !is_new) merge();
                store_transposed(corner, thread);
            }
        }
        return is_new;
    }

    JITNEY_DEVICE void run() const {
        release_next_grid();
        int tile = static_cast<int>(blockIdx.x);
        if (C::amax == 0 && params.backwards != 0) tile = params.tiles - 1 - tile;
        Corner corner = corner_of(tile);
        wait_for_previous_grid();
        unsigned largest = 0;
        if constexpr (C::amax == 0) {
            do_tile(corner, largest, true);
        } else {
            int step = static_cast<int>(gridDim.x);
            bool anew = false;
            for (;;) {
                const bool last = tile + step >= params.tiles;
                const bool is_new = do_tile(corner, largest, last && !anew);
                if (last) {
                    if (!is_new || !begins_anew()) break;
                    anew = true;
                    step = 1;
                    tile = -1;
                }
                if (kTransposes) __syncthreads();  // nobody reads this tile any more
                tile += step;
                corner = corner_of(tile);
            }
        }
        if (C::codes != kNoCodes && params.scale != nullptr && blockIdx.x == 0 &&
            threadIdx.x == 0) {
            *params.scale = fp8_scale(multiplier());
        }
    }
};

template <class C>
__global__ void __launch_bounds__(kFp8QuantizeThreads)
    fp8_quantize(const __grid_constant__ Fp8QuantizeParams params) {
    Fp8Quantize<C>{params}.run();
}

}  // namespace jitney
