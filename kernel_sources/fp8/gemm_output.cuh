// From the accumulators to memory: scale, bias, the output's format, and the maximum of what went
// there.
#pragma once

#include "common/amax.cuh"
#include "common/arrival.cuh"
#include "common/element.cuh"
#include "common/fp8.cuh"
#include "common/vector.cuh"
#include "fp8/gemm_mma_scales.cuh"

namespace jitney {

template <int format>
constexpr int kBytesOf = format == kFp32 ? 4 : (format == kFp16 || format == kBf16 ? 2 : 1);

// Two neighbouring elements of the output.
template <int format>
JITNEY_DEVICE auto fp8_gemm_pair(float low, float high) {
    if constexpr (format == kFp32) {
        return Vector<float, 2>{{low, high}};
    } else if constexpr (format == kFp16 || format == kBf16) {
        return Element<format>::pair(low, high);
    } else {
        return static_cast<unsigned short>(fp8_pair<format>(low, high));
    }
}

template <class C, int fragments_m, int fragments_n>
struct Fp8GemmOutput {
    using Products = Fp8Products<C, fragments_m, fragments_n>;
    static constexpr Fp8GemmWarps kWarps = fp8_gemm_warps(C::tile_m, C::tile_n, C::unpack != 0);
    static constexpr int kThreads = 32 * kWarps.all();
    static constexpr int kWarpsK = kWarps.k;
    static constexpr int kWriters = kThreads / kWarpsK;  // threads that write the output
    static constexpr int kVectors = fragments_m * 2 * fragments_n;
    static constexpr int kColumns = 16 * fragments_n;  // of a warp
    static constexpr int kElementBytes = kBytesOf<C::out>;
    static constexpr int kPitch =
        fp8_gemm_out_pitch(C::tile_m, C::tile_n, C::unpack != 0, kElementBytes);
    static constexpr bool kFp8 = kElementBytes == 1;

    const Fp8GemmParams& params;
    int first_m;  // of the warp
    int first_n;
    int end_m;  // of the rows that are this block's to write
    int group;

    // The four sums that an accumulator of the tensor cores holds.
    JITNEY_DEVICE static float (&sums_of(Products& sums, int v))[4] {
        return sums.c[v / (2 * fragments_n)][v % (2 * fragments_n)];
    }
    // To and from memory, where those of a thread lie `stride` apart.
    JITNEY_DEVICE static void store(Products& sums, Vector<float, 4>* to, long long stride) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            const float(&c)[4] = sums_of(sums, v);
            to[v * stride] = {{c[0], c[1], c[2], c[3]}};
        }
    }
    JITNEY_DEVICE static void add(Products& sums, const Vector<float, 4>* from, long long stride) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            const Vector<float, 4> part = from[v * stride];
            float(&c)[4] = sums_of(sums, v);
#pragma unroll
            for (int e = 0; e < 4; ++e)
                c[e] += part.items[e];
        }
    }

    // Adds up, in the first of the warps along K, what they all have.
    JITNEY_DEVICE void merge_warps(Products& sums, int warp_k) const {
        auto* const parts = reinterpret_cast<Vector<float, 4>*>(shared_memory()) +
                            static_cast<int>(threadIdx.x) % kWriters;
        if (warp_k > 0) store(sums, parts + (warp_k - 1) * kVectors * kWriters, kWriters);
        __syncthreads();
        if (warp_k == 0) {
#pragma unroll
            for (int from = 0; from < kWarpsK - 1; ++from)
                add(sums, parts + from * kVectors * kWriters, kWriters);
        }
        __syncthreads();
    }

    // Leaves this split's sums in the workspace. True in the block that has to go on: it then holds
    // the sums of all splits, added in their order, whichever arrived last.
    JITNEY_DEVICE bool merge_splits(Products& sums, int tile, int split, bool writes,
                                    unsigned* flag) const {
        constexpr long long kPart = static_cast<long long>(kVectors) * kWriters;
        auto* const parts = reinterpret_cast<Vector<float, 4>*>(params.partials) +
                            kPart * tile * params.splits + threadIdx.x % kWriters;
        if (writes) store(sums, parts + split * kPart, kWriters);
        if (!arrive_last(params.arrived + tile, static_cast<unsigned>(params.splits), flag)) {
            return false;
        }
        if (!writes) return true;
        sums.clear();
        // As many loads under way as there are registers for.
        [[maybe_unused]] constexpr int kAtATime = kVectors >= 16 ? 1 : 16 / kVectors;
#pragma unroll kAtATime
        for (int from = 0; from < params.splits; ++from)
            add(sums, parts + from * kPart, kWriters);
        return true;
    }

    JITNEY_DEVICE float bias(int column) const {
        if (column >= params.n) return 0.0f;
        const long long at = C::grouped != 0 ? group * params.bias_group + column : column;
        return params.bias_format == kFp32
                   ? static_cast<const float*>(params.bias)[at]
                   : static_cast<const Element<kBf16>*>(params.bias)[at].value();
    }

    // Where in a warp's columns pair j of its accumulators goes, and which two they are: of a
    // transposed B, two products share each sixteen columns in turn.
    JITNEY_DEVICE static int column_of(int j, int lane) {
        if constexpr (C::trans_b != 0) return j * 8 + lane % 4 * 2;
        return j / 2 * 16 + lane % 4 * 4 + j % 2 * 2;
    }
    JITNEY_DEVICE static float& element(float (&c)[2 * fragments_n][4], int j, int upper_row,
                                        int which) {
        if constexpr (C::trans_b != 0) return c[j][2 * upper_row + which];
        return c[j / 2 * 2 + which][2 * upper_row + j % 2];
    }

    // body(value, row, column) for the results of this thread, counted from the warp's first.
    template <class Body>
    JITNEY_DEVICE static void for_each(Products& sums, const Body& body) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int j = 0; j < 2 * fragments_n; ++j) {
#pragma unroll
            for (int which = 0; which < 2; ++which) {
                const int column = column_of(j, lane) + which;
#pragma unroll
                for (int i = 0; i < fragments_m; ++i) {
#pragma unroll
                    for (int upper = 0; upper < 2; ++upper) {
                        const int row = i * 16 + fp8_side_of<C::trans_a == 0>(lane / 4 + 8 * upper);
                        body(element(sums.c[i], j, upper, which), row, column);
                    }
                }
            }
        }
    }

    JITNEY_DEVICE void scale_and_bias(Products& sums) const {
        // A sum of nothing is 0, whatever the scale.
        if constexpr (C::scales == kOneScale) {
            const float scale = params.k > 0 ? *params.scale : 0.0f;
            for_each(sums, [scale](float& value, int, int) { value *= scale; });
        } else if constexpr (C::scales == kSideScales) {
            if (params.k > 0) {
                for_each(sums, [this](float& value, int row, int column) {
                    value *= fp8_side_scale(params, first_m + row, first_n + column, group);
                });
            }
        }
        if (params.bias == nullptr) return;
        for_each(sums, [this](float& value, int, int column) { value += bias(first_n + column); });
    }

    // The largest magnitude among this thread's results.
    JITNEY_DEVICE unsigned largest(Products& sums) const {
        unsigned found = 0;
        const int rows = end_m - first_m;
        const int columns = params.n - first_n;
        for_each(sums, [&](float& value, int row, int column) {
            if (row < rows && column < columns) found = max(found, magnitude_bits(value));
        });
        return found;
    }

    // That of all blocks leaves with the last of them. `words` is shared memory, one a warp.
    JITNEY_DEVICE void write_amax(unsigned found, unsigned* words) const {
        found = block_max<kThreads>(found, words);
        if (threadIdx.x != 0) return;
        // Blocks without a tile, where groups have fewer than there may be, count as well.
        const auto tiles = static_cast<unsigned>(params.m_tiles * params.n_tiles);
        unsigned result;
        if (merge_amax(params.amax_counters, found, tiles, result))
            *params.amax = __uint_as_float(result);
    }

    // Two neighbours of sixteen rows each into this warp's `staging`.
    JITNEY_DEVICE static void stage(float (&c)[2 * fragments_n][4], char* staging) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int j = 0; j < 2 * fragments_n; ++j) {
#pragma unroll
            for (int upper = 0; upper < 2; ++upper) {
                const int row = fp8_side_of<C::trans_a == 0>(lane / 4 + 8 * upper);
                const auto pair =
                    fp8_gemm_pair<C::out>(element(c, j, upper, 0), element(c, j, upper, 1));
                char* to = staging + row * kPitch + column_of(j, lane) * kElementBytes;
                *reinterpret_cast<decltype(fp8_gemm_pair<C::out>(0.0f, 0.0f))*>(to) = pair;
            }
        }
    }

    // Sixteen rows at a time go through `staging`, and leave from there as whole lines.
    JITNEY_DEVICE void write(Products& sums, char* staging) const {
        constexpr int kRowVectors = kColumns * kElementBytes / 16;  // in a row
        constexpr int kElements = 16 / kElementBytes;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const bool whole_vectors = params.out_vectors != 0 && first_n + kColumns <= params.n;
        char* const out = static_cast<char*>(params.out);
        if constexpr (kFp8) {
            const float multiplier = *params.multiplier;
            for_each(sums, [multiplier](float& value, int, int) { value *= multiplier; });
        }
#pragma unroll
        for (int i = 0; i < fragments_m; ++i) {
            const int row = first_m + i * 16;
            stage(sums.c[i], staging);
            __syncwarp();
            if (whole_vectors) {
#pragma unroll
                for (int v = lane; v < 16 * kRowVectors; v += 32) {
                    if (row + v / kRowVectors >= end_m) continue;
                    const long long at = (row + v / kRowVectors) * params.out_stride + first_n +
                                         v % kRowVectors * kElements;
                    store_vector(reinterpret_cast<unsigned*>(out + at * kElementBytes),
                                 load_vector<4>(reinterpret_cast<const unsigned*>(
                                     staging + v / kRowVectors * kPitch + v % kRowVectors * 16)));
                }
            } else {
                write_elements(row, staging);
            }
            __syncwarp();
        }
    }

    JITNEY_DEVICE void write_elements(int first_row, const char* staging) const {
        const int rows = min(16, end_m - first_row);
        const int columns = min(kColumns, params.n - first_n);
        char* const out = static_cast<char*>(params.out);
#pragma unroll 1
        for (int row = 0; row < rows; ++row) {
            const long long at = (first_row + row) * params.out_stride + first_n;
#pragma unroll 1
            for (int column = static_cast<int>(threadIdx.x) % 32; column < columns; column += 32) {
                store_vector(
                    out + (at + column) * kElementBytes,
                    load_vector<kElementBytes>(staging + row * kPitch + column * kElementBytes));
            }
        }
    }
};

}  // namespace jitney
