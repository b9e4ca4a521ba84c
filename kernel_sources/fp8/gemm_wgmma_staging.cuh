// How results of fp8_gemm_wgmma leave: from the registers into shared memory, where chunks of 16
// bytes are permuted so that neither way meets a bank twice, and from there in whole lines, by the
// threads or by the copy engine.
#pragma once

#include "common/bulk_copy.cuh"
#include "common/element.cuh"
#include "common/named_barrier.cuh"
#include "common/stmatrix.cuh"
#include "common/tensor_copy.cuh"
#include "common/vector.cuh"
#include "fp8/gemm_wgmma_memory.cuh"

namespace jitney {

template <class C>
struct Fp8WgmmaStaging {
    using Memory = Fp8WgmmaMemory<C>;
    static constexpr Fp8WgmmaTiles kTiles = Memory::kTiles;
    static constexpr int kBytes = Memory::kOutBytes;
    static constexpr int kElements = 16 / kBytes;  // of a chunk
    static constexpr bool kFp8 = kBytes == 1;
    static constexpr int kPieceRows = 16;
    static constexpr int kPieceBytes = kPieceRows * 128;
    static constexpr int kPieceColumns = 128 / kBytes;
    static constexpr int kPieceBlocks = kPieceColumns / 8;
    static constexpr int kFirstBarrier = 1;  // named barriers, one a consumer

    const Fp8GemmParams& params;
    const TensorMapBits* map;
    int consumer;
    int next = 0;  // of the warp's pieces
    int end_of_group = 0;

    // The end of the rows that are this block's to write.
    JITNEY_DEVICE int end_m() const { return C::grouped != 0 ? end_of_group : params.m; }

    // Read anew, since what is needed between tiles has no registers in the loop.
    JITNEY_DEVICE static int lane() { return reread_thread_index() % kWarpSize; }
    JITNEY_DEVICE static int warp() {
        return reread_thread_index() % kFp8WarpgroupThreads / kWarpSize;
    }

    // Where the warpgroup's part of the memory begins.
    JITNEY_DEVICE int begin() const {
        return kTiles.staging_at() + consumer * (kTiles.staging_bytes() / kTiles.consumers());
    }
    // Where a chunk stands in rows of `chunks`.
    template <int chunks>
    JITNEY_DEVICE static int place(int row, int chunk) {
        return (row * chunks + (chunk ^ row % (chunks < 8 ? chunks : 8))) * 16;
    }

    // Sixteen rows of 128 bytes from the warp's first row and this column on: `blocks` blocks of 8
    // columns from number `first` on, or as many as there are.
    template <int blocks>
    JITNEY_DEVICE void write_piece(const float (&results)[blocks][4], int first, int first_m,
                                   int first_n) {
        if constexpr (C::pieces > 0) {
            const int at = begin() + (warp() * C::pieces + next) * kPieceBytes;
            next = next == C::pieces - 1 ? 0 : next + 1;
            // The piece that was there before has been read.
            if (lane() == 0) bulk_store_wait_read<C::pieces - 1>();
            __syncwarp();
            stage(results, first, at);
            fence_shared_for_async();
            __syncwarp();
            if (lane() == 0) {
                tensor_store(map, Memory::at(at), first_n, first_m);
                bulk_store_commit();
            }
        } else {
            const int at = begin() + warp() * kPieceBytes;
            stage(results, first, at);
            __syncwarp();
            const int columns = min(kPieceColumns, (blocks - first) * 8);
            send<kWarpSize, 8>(at, lane(), first_m, first_n, columns);
            __syncwarp();
        }
    }

    // Nothing is read from this warp's pieces any more.
    JITNEY_DEVICE void finish() const {
        if (C::pieces > 0 && lane() == 0) bulk_store_wait_read<0>();
    }

    // The same by the warpgroup, where rows of its results are columns of the output: two blocks of
    // 8 rows of 64 elements.
    JITNEY_DEVICE void write_swapped(const float (&a)[4], const float (&b)[4], int first_m,
                                     int first_n) const {
        constexpr int kChunks = 64 * kBytes / 16;
        stage_swapped(a, b);
        named_barrier_wait(kFirstBarrier + consumer, kFp8WarpgroupThreads);
        send<kFp8WarpgroupThreads, kChunks>(
            begin(), static_cast<int>(threadIdx.x) % kFp8WarpgroupThreads, first_m, first_n, 64);
        named_barrier_wait(kFirstBarrier + consumer, kFp8WarpgroupThreads);
    }

  private:
    template <int blocks>
    JITNEY_DEVICE static void stage(const float (&results)[blocks][4], int first, int at) {
        if constexpr (kBytes == 2) {
            using T = Element<C::out>;
            // Of four matrices a lane has the rows of the upper or the lower half, and one of two
            // neighbouring chunks.
            const int row = lane() % 16;
#pragma unroll
            for (int i = 0; i < kPieceBlocks && first + i < blocks; i += 2) {
                const float(&a)[4] = results[first + i];
                const float(&b)[4] = results[first + i + 1];
                stmatrix_x4(Memory::at(at + place<8>(row, i + lane() / 16)), T::pair(a[0], a[1]),
                            T::pair(a[2], a[3]), T::pair(b[0], b[1]), T::pair(b[2], b[3]));
            }
        } else {
#pragma unroll
            for (int i = 0; i < kPieceBlocks && first + i < blocks; ++i) {
                const int byte = (i * 8 + lane() % 4 * 2) * kBytes;
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float* const pair = results[first + i] + 2 * half;
                    const SharedAddress to =
                        Memory::at(at + byte % 16 + place<8>(lane() / 4 + half * 8, byte / 16));
                    if constexpr (kFp8) {
                        store_shared(
                            to, static_cast<unsigned short>(fp8_pair<C::out>(pair[0], pair[1])));
                    } else {
                        store_shared(to, pair[0]);
                        store_shared(to + 4, pair[1]);
                    }
                }
            }
        }
    }

    JITNEY_DEVICE void stage_swapped(const float (&a)[4], const float (&b)[4]) const {
        constexpr int kChunks = 64 * kBytes / 16;
        if constexpr (kBytes == 2) {
            using T = Element<C::out>;
            const int row = lane() / 16 * 8 + lane() % 8;
            const int chunk = warp() * 2 + lane() / 8 % 2;
            stmatrix_x4_transposed(Memory::at(begin() + place<kChunks>(row, chunk)),
                                   T::pair(a[0], a[1]), T::pair(a[2], a[3]), T::pair(b[0], b[1]),
                                   T::pair(b[2], b[3]));
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const float value = e < 4 ? a[e % 4] : b[e % 4];
                const int row = e / 4 * 8 + lane() % 4 * 2 + e % 2;
                const int byte = (warp() * 16 + lane() / 4 + e % 4 / 2 * 8) * kBytes;
                const SharedAddress to =
                    Memory::at(begin() + place<kChunks>(row, byte / 16) + byte % 16);
                if constexpr (kFp8) {
                    store_shared(to, fp8_bits<C::out>(value));
                } else {
                    store_shared(to, value);
                }
            }
        }
    }

    // Sixteen rows of `chunks` chunks from where they are staged, of which `columns` elements
    // count, by `threads` threads of which this is number `thread`.
    template <int threads, int chunks>
    JITNEY_DEVICE void send(int at, int thread, int first_m, int first_n, int columns) const {
        char* const out = static_cast<char*>(params.out);
        const char* const staged = shared_memory() + at;
        if (params.out_vectors != 0 && first_n + columns <= params.n) {
#pragma unroll
            for (int i = thread; i < kPieceRows * chunks; i += threads) {
                const int row = i / chunks;
                const int column = i % chunks * kElements;
                if (first_m + row >= end_m() || column >= columns) continue;
                const long long to = (first_m + row) * params.out_stride + first_n + column;
                store_vector(reinterpret_cast<unsigned*>(out + to * kBytes),
                             load_vector<4>(reinterpret_cast<const unsigned*>(
                                 staged + place<chunks>(row, i % chunks))));
            }
        } else {
            constexpr int kRowElements = chunks * kElements;
#pragma unroll 1
            for (int i = thread; i < kPieceRows * kRowElements; i += threads) {
                const int row = i / kRowElements;
                const int column = i % kRowElements;
                if (first_m + row >= end_m() || column >= min(columns, params.n - first_n))
                    continue;
                const long long to = (first_m + row) * params.out_stride + first_n + column;
                store_vector(out + to * kBytes,
                             load_vector<kBytes>(staged + place<chunks>(row, column / kElements) +
                                                 column % kElements * kBytes));
            }
        }
    }
};

}  // namespace jitney
