// The tiles of the operands in shared memory, and their way there.
//
// A tile has rows of 16-byte chunks. Along K (k_contiguous) a row is one row of A or column of B.
// Of a transposed operand a row is one k, as it lies in memory, and the transposition happens on
// the way to the registers (gemm_fragments.cuh). Where a chunk stands is chosen so that the eight
// rows which an ldmatrix reads at a time fall into different banks.
#pragma once

#include "common/cp_async.cuh"
#include "common/vector.cuh"
#include "fp8/gemm_params.h"

namespace jitney {

template <int side_, int tile_k_, bool k_contiguous_>
struct Fp8Tile {
    static constexpr int kSide = side_;  // along M or N
    static constexpr int kTileK = tile_k_;
    static constexpr bool kKContiguous = k_contiguous_;
    static constexpr int kRows = k_contiguous_ ? side_ : tile_k_;
    static constexpr int kRowBytes = k_contiguous_ ? tile_k_ : side_;
    static constexpr int kChunks = kRowBytes / 16;
    static constexpr int kBytes = side_ * tile_k_;

    // Where a row's chunk stands. It stays within its line of 128 bytes, because a copy is written
    // a line at a time. kPeriod rows on, the same chunk is kPeriod * kRowBytes further.
    static constexpr int kPeriod = k_contiguous_ ? 8 : 16;
    JITNEY_DEVICE static constexpr int place(int row, int chunk) {
        // The same where a row has room for all that it is XORed with, and cheaper there.
        if constexpr (kChunks >= 4) return row * kRowBytes + (chunk ^ spread(row)) * 16;
        return ((row * kChunks + chunk) ^ spread(row)) * 16;
    }

    // An ldmatrix reads one chunk of eight rows: along K neighbours, and of a transposed operand
    // those of sixteen that have one value of bit 1. The bits of the row that are not in a line are
    // XORed into those in which the eight agree.
    JITNEY_DEVICE static constexpr int spread(int row) {
        if constexpr (kKContiguous) {
            static_assert(kChunks % 8 == 0);
            return row & 7;
        } else if constexpr (kChunks == 1) {
            return row >> 2 & 2;
        } else if constexpr (kChunks == 2) {
            return (row >> 2 & 1) | (row >> 1 & 4);
        } else if constexpr (kChunks == 4) {
            return row >> 2 & 3;
        } else {
            static_assert(kChunks == 8);
            return (row & 1) | (row >> 1 & 6);
        }
    }
};

// Which chunks of a tile a thread moves: one column of chunks, every kRowsAStep-th row.
template <class Tile, int threads>
struct Fp8TileShare {
    static constexpr int kRowsAStep = threads / Tile::kChunks;
    static constexpr int kSteps = (Tile::kRows + kRowsAStep - 1) / kRowsAStep;
    static_assert(kRowsAStep % Tile::kPeriod == 0);

    const unsigned char* from;
    long long step;     // bytes from one row of this thread to its next
    long long advance;  // bytes from one tile of K to the next
    int row;
    int chunk;
    int side_left;  // rows or bytes of the operand along M or N, from this thread's first on

    JITNEY_DEVICE Fp8TileShare(const Fp8GemmOperand& operand, int side, int first, int first_k) {
        const int thread = static_cast<int>(threadIdx.x);
        row = thread / Tile::kChunks;
        chunk = thread % Tile::kChunks;
        const int outer = Tile::kKContiguous ? first : first_k;
        const int inner = Tile::kKContiguous ? first_k : first;
        from = operand.data + (static_cast<long long>(outer) + row) * operand.stride + inner +
               chunk * 16;
        step = kRowsAStep * operand.stride;
        advance = Tile::kKContiguous ? Tile::kTileK : Tile::kTileK * operand.stride;
        side_left = side - first - (Tile::kKContiguous ? row : chunk * 16);
    }

    JITNEY_DEVICE static bool idle(int row_of_step) {
        return kSteps * kRowsAStep > Tile::kRows && row_of_step >= Tile::kRows;
    }

    // The bytes of step i that exist, where `k_left` of the tile's K do.
    template <bool whole>
    JITNEY_DEVICE int bytes(int i, int k_left) const {
        if constexpr (Tile::kKContiguous) {
            if (i * kRowsAStep >= side_left) return 0;
            return whole ? 16 : max(0, min(16, k_left - chunk * 16));
        } else {
            if (!whole && row + i * kRowsAStep >= k_left) return 0;
            return max(0, min(16, side_left));
        }
    }

    JITNEY_DEVICE int place(int i) const {
        return Tile::place(row, chunk) + i * kRowsAStep * Tile::kRowBytes;
    }
};

// For operands whose every row begins at a multiple of 16 bytes.
template <class Tile, int threads>
struct Fp8AlignedLoader : Fp8TileShare<Tile, threads> {
    using Share = Fp8TileShare<Tile, threads>;
    using Share::Share;

    template <bool whole>
    JITNEY_DEVICE void copy(SharedAddress tile, int k_left) const {
#pragma unroll
        for (int i = 0; i < Share::kSteps; ++i) {
            if (Share::idle(this->row + i * Share::kRowsAStep)) break;
            cp_async_16_part(tile + static_cast<unsigned>(this->place(i)),
                             this->from + i * this->step, this->template bytes<whole>(i, k_left));
        }
    }

    // Begins to load the next tile of K, of which `k_left` exist: beyond lie zeros.
    JITNEY_DEVICE void begin(SharedAddress tile, int k_left) {
        if (k_left >= Tile::kTileK) {
            copy<true>(tile, k_left);
        } else {
            copy<false>(tile, k_left);
        }
        this->from += this->advance;
    }
    JITNEY_DEVICE void end(char*) {}
};

// For any others: words, or bytes at the ends of a row, through registers.
template <class Tile, int threads>
struct Fp8UnalignedLoader : Fp8TileShare<Tile, threads> {
    using Share = Fp8TileShare<Tile, threads>;

    int place_in_row;  // of this thread's chunk
    int row_bytes;
    Vector<unsigned, 4> chunks[Share::kSteps];

    JITNEY_DEVICE Fp8UnalignedLoader(const Fp8GemmOperand& operand, int side, int first,
                                     int first_k, int k)
        : Share(operand, side, first, first_k),
          place_in_row((Tile::kKContiguous ? first_k : first) + this->chunk * 16),
          row_bytes(Tile::kKContiguous ? k : side) {}

    JITNEY_DEVICE Vector<unsigned, 4> gather(const unsigned char* at, int bytes) const {
        Vector<unsigned, 4> gathered{};
        const int shift = static_cast<int>(reinterpret_cast<unsigned long long>(at) & 3);
        const int behind = shift == 0 ? 0 : 4 - shift;
        if (bytes == 16 && place_in_row >= shift && place_in_row + 16 + behind <= row_bytes) {
            const auto* first = reinterpret_cast<const unsigned*>(at - shift);
            unsigned words[5];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words[i] = first[i];
            words[4] = shift == 0 ? 0u : first[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                gathered.items[i] = __byte_perm(words[i], words[i + 1],
                                                0x3210u + 0x1111u * static_cast<unsigned>(shift));
            }
        } else {
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                if (i < bytes) {
                    gathered.items[i / 4] |= static_cast<unsigned>(at[i]) << i % 4 * 8;
                }
            }
        }
        return gathered;
    }

    JITNEY_DEVICE void begin(SharedAddress, int k_left) {
#pragma unroll
        for (int i = 0; i < Share::kSteps; ++i) {
            if (Share::idle(this->row + i * Share::kRowsAStep)) break;
            chunks[i] = gather(this->from + i * this->step, this->template bytes<false>(i, k_left));
        }
        this->from += this->advance;
        if constexpr (Tile::kKContiguous) place_in_row += Tile::kTileK;
    }
    JITNEY_DEVICE void end(char* tile) {
#pragma unroll
        for (int i = 0; i < Share::kSteps; ++i) {
            if (Share::idle(this->row + i * Share::kRowsAStep)) break;
            store_vector(reinterpret_cast<unsigned*>(tile + this->place(i)), chunks[i]);
        }
    }
};

template <class Tile, int threads, bool unaligned>
struct Fp8LoaderChoice {
    using Type = Fp8AlignedLoader<Tile, threads>;
};
template <class Tile, int threads>
struct Fp8LoaderChoice<Tile, threads, true> {
    using Type = Fp8UnalignedLoader<Tile, threads>;
};

}  // namespace jitney
