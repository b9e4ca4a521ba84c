// The same as kernels.cuh for the wrappers of Hopper's instructions.
#if __CUDA_ARCH__ >= 900
#include "common/bulk_copy.cuh"
#include "common/cluster.cuh"
#include "common/mbarrier.cuh"
#include "common/named_barrier.cuh"
#include "common/proxy.cuh"
#include "common/stmatrix.cuh"
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "common/register_share.cuh"
#include "common/wgmma.cuh"
#endif

namespace jitney::wrappers {

#if __CUDA_ARCH__ >= 900

// A warp stores four registers a lane; out: the four matrices, one behind the other.
__global__ void store_matrices(const unsigned* in, unsigned* out) {
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const unsigned lane = threadIdx.x;
    stmatrix_x4(shared_address(shared + 4 * lane), in[4 * lane], in[4 * lane + 1], in[4 * lane + 2],
                in[4 * lane + 3]);
    __syncwarp();
    for (unsigned i = 0; i < 4; ++i)
        out[4 * lane + i] = shared[4 * lane + i];
}

// One thread and a barrier for two arrivals. out: at each step of its life, whether phase 0 and
// phase 1 have ended; and the 16 bytes that its second phase counts.
__global__ void phases(const unsigned* in, unsigned* out) {
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const SharedAddress barrier = shared_address(shared + 4);
    int step = 0;
    const auto note = [&] {
        out[2 * step] = barrier_ended(barrier, 0) ? 1 : 0;
        out[2 * step + 1] = barrier_ended(barrier, 1) ? 1 : 0;
        ++step;
    };
    barrier_make(barrier, 2);
    fence_made_barriers();
    note();
    barrier_arrive(barrier);
    note();
    barrier_arrive(barrier);
    note();
    barrier_arrive_expecting(barrier, 16);
    barrier_arrive(barrier);
    note();
    bulk_load(shared_address(shared), in, 16, barrier);
    barrier_wait(barrier, 1);
    note();
    for (unsigned i = 0; i < 4; ++i)
        out[10 + i] = shared[i];
}

// Threads write the words of `in` plus 1 to shared memory, whence they go to `out` in two groups;
// the first half of them is then brought back, plus 1 again, to the end of `out`.
__global__ void bulk_stores(const unsigned* in, unsigned* out) {
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const unsigned threads = blockDim.x;
    const SharedAddress barrier = shared_address(shared + 4 * threads);
    if (threadIdx.x == 0) barrier_make(barrier, 1);
    for (unsigned i = 0; i < 4; ++i)
        shared[i * threads + threadIdx.x] = in[i * threads + threadIdx.x] + 1;
    fence_made_barriers();
    fence_shared_for_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out, shared_address(shared), 8 * threads);
        bulk_store_commit();
        bulk_store(out + 2 * threads, shared_address(shared + 2 * threads), 8 * threads);
        bulk_store_commit();
        bulk_store_wait<1>();
        bulk_store_wait_read<0>();
        barrier_arrive_expecting(barrier, 8 * threads);
        bulk_load(shared_address(shared), out, 8 * threads, barrier);
        bulk_store_wait<0>();
    }
    barrier_wait(barrier, 0);
    for (unsigned i = 0; i < 2; ++i)
        out[(4 + i) * threads + threadIdx.x] = shared[i * threads + threadIdx.x] + 1;
}

// Two warps write their words and go on, two others wait for them and read them backwards.
__global__ void named_barriers(const unsigned* in, unsigned* out) {
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const unsigned own = threadIdx.x % 64;
    if (threadIdx.x < 64) {
        shared[own] = in[own];
        named_barrier_arrive(5, 128);
    } else {
        named_barrier_wait(5, 128);
        out[own] = shared[63 - own];
    }
}

// Each block of a cluster sends 16 bytes of `in`, and its number more in each word, to the next
// block, whose barrier counts them. out: what came, of each block, and whether the barrier's phase
// had ended before anything was sent, and afterwards.
__global__ void sends_in_cluster(const unsigned* in, unsigned* out) {
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const SharedAddress landed = shared_address(shared + 4);
    const unsigned blocks = in[0];
    const unsigned own = block_in_cluster();
    unsigned* const result = out + 6 * blockIdx.x;
    if (threadIdx.x == 0) {
        barrier_make(landed, 1);
        fence_made_barriers();
        barrier_arrive_expecting(landed, 16);
        result[4] = barrier_has_ended(landed, 0) ? 1 : 0;
    }
    cluster_barrier();
    if (threadIdx.x == 0) {
        const unsigned next = (own + 1) % blocks;
        float values[4];
        for (unsigned i = 0; i < 4; ++i)
            values[i] = __uint_as_float(in[1 + i] + own);
        store_in_cluster(address_in_block(shared_address(shared), next),
                         address_in_block(landed, next), values);
    }
    barrier_wait(landed, 0);
    if (threadIdx.x < 4) result[threadIdx.x] = shared[threadIdx.x];
    if (threadIdx.x == 0) result[5] = barrier_has_ended(landed, 0) ? 1 : 0;
    cluster_barrier();
}

// Each block of a cluster waits for one arrival of every block, in both phases of its barrier. out:
// of each block its number in the cluster, and 1 where the barrier's phases ended.
__global__ void clusters(const unsigned* in, unsigned* out) {
    const SharedAddress barrier = shared_address(shared_memory());
    const unsigned blocks = in[0];
    if (threadIdx.x == 0) {
        barrier_make(barrier, blocks);
        fence_made_barriers();
    }
    cluster_barrier();
    for (unsigned phase = 0; phase < 2; ++phase) {
        if (threadIdx.x < blocks) barrier_arrive_in_block(barrier, threadIdx.x);
        barrier_wait(barrier, phase);
        __syncwarp();  // else the next phase may end before all of its threads saw this one end
    }
    out[2 * blockIdx.x] = block_in_cluster();
    out[2 * blockIdx.x + 1] = address_in_block(barrier, 0) == address_in_block(barrier, 1) ? 0 : 1;
    cluster_arrive();
    cluster_wait();
}

// Each thread has four numbers, and loads those of the same thread of the cluster's next block, the
// last two of them once more.
__global__ void cluster_loads(const unsigned* in, unsigned* out) {
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    float* const numbers = reinterpret_cast<float*>(shared_memory()) + 4 * threadIdx.x;
    for (unsigned i = 0; i < 4; ++i)
        numbers[i] = __uint_as_float(in[4 * own + i]);
    cluster_barrier();
    const SharedAddress there =
        address_in_block(shared_address(numbers), (block_in_cluster() + 1) % blocks_in_cluster());
    float four[4];
    float two[2];
    cluster_load(four, there);
    cluster_load(two, there + 8);
    for (unsigned i = 0; i < 4; ++i)
        out[6 * own + i] = __float_as_uint(four[i]);
    for (unsigned i = 0; i < 2; ++i)
        out[6 * own + 4 + i] = __float_as_uint(two[i]);
    cluster_barrier();
}

#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__global__ void __launch_bounds__(384, 1) shares_of_registers(const unsigned* in, unsigned* out) {
    if (threadIdx.x < 128) {
        give_registers<40>();
    } else {
        take_registers<232>();
    }
    out[threadIdx.x] = in[threadIdx.x];
}

// How a matrix of 16-byte chunks lies in shared memory: the distances of the descriptor's leading
// and stride offsets, and the swizzle's number there (0: none, 1: 128 bytes, 2: 64, 3: 32).
template <int swizzle>
struct ChunkedMatrix {
    static constexpr unsigned kSpan = swizzle == 0 ? 16 : 256u >> swizzle;
    static constexpr unsigned kInSpan = kSpan / 16;
    unsigned leading;
    unsigned stride;

    JITNEY_DEVICE WgmmaOperand operand(SharedAddress begin) const {
        return static_cast<WgmmaOperand>(swizzle) << 62 |
               static_cast<WgmmaOperand>(stride / 16) << 32 |
               static_cast<WgmmaOperand>(leading / 16) << 16 | begin >> 4;
    }
    // Chunk `chunk` of row `row`, whose rows run along k or across it, from the begin on.
    JITNEY_DEVICE unsigned place(unsigned row, unsigned chunk, bool along_k) const {
        if (swizzle == 0) {
            return along_k ? row % 8 * 16 + row / 8 * stride + chunk * leading
                           : row % 8 * 16 + row / 8 * leading + chunk * stride;
        }
        const unsigned flat = row % 8 * kSpan + chunk % kInSpan * 16;
        const unsigned swizzled = flat ^ (flat >> 3 & (kSpan - 16));
        return swizzled + row / 8 * stride + chunk / kInSpan * leading;
    }
};

// A warpgroup multiplies a [64, k] by b [n, k], whose rows stand in `in` one behind the other, k of
// 64 bytes, n = 96; out: [64, 96]. a comes from registers or as b does, rows of b along n are
// stored transposed first.
template <int format, bool registers, bool b_along_n, int swizzle>
__global__ void warpgroup_product(const unsigned* in, unsigned* out) {
    constexpr unsigned n = 96;
    constexpr unsigned size = format == kFp8E4m3 ? 1 : 2;
    constexpr unsigned depth = 64 / size;
    using Matrix = ChunkedMatrix<swizzle>;
    // Chunks along k lie 16 * rows apart without a swizzle; with one all of a row's lie in a span,
    // or in two of 32 bytes.
    const auto matrix_of = [](unsigned rows) {
        if (swizzle == 0) return Matrix{16 * rows, 128};
        return Matrix{rows * Matrix::kSpan, 8 * Matrix::kSpan};
    };
    const auto a_matrix = matrix_of(64);
    Matrix b_matrix = matrix_of(n);
    if (b_along_n) {
        b_matrix = swizzle == 0 ? Matrix{128, 16 * depth}
                                : Matrix{depth * Matrix::kSpan, 8 * Matrix::kSpan};
    }
    char* const a_begin = shared_memory();
    char* const b_begin = a_begin + 16 * 1024;
    const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(in);
    for (unsigned i = threadIdx.x; i < 64 * 64; i += blockDim.x)
        a_begin[a_matrix.place(i / 64, i % 64 / 16, true) + i % 16] = static_cast<char>(bytes[i]);
    for (unsigned i = threadIdx.x; i < n * 64; i += blockDim.x) {
        const unsigned row = i / 64;
        const unsigned k = i % 64 / size;
        const unsigned at = b_along_n ? b_matrix.place(k, row / (16 / size), false) +
                                            row % (16 / size) * size + i % size
                                      : b_matrix.place(row, i % 64 / 16, true) + i % 16;
        b_begin[at] = static_cast<char>(bytes[64 * 64 + i]);
    }
    fence_shared_for_async();
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x / 32 * 16 + lane / 4;
    float c[n / 8][4];
    for (unsigned i = 0; i < n / 2; ++i)
        c[i / 4][i % 4] = 1000.0f;
    // What stands in the accumulators before counts in the second of two products alone.
    unsigned parts[2][4];
    for (unsigned step = 0; step < 2; ++step) {
        for (unsigned i = 0; i < 4; ++i)
            parts[step][i] = in[(row + i % 2 * 8) * 16 + step * 8 + lane % 4 + i / 2 * 4];
    }
    wgmma_begin();
#pragma unroll
    for (unsigned step = 0; step < 2; ++step) {
        const unsigned b_at = b_along_n
                                  ? b_matrix.place(step * depth / 2, 0, false)
                                  : (swizzle == 3 || swizzle == 0
                                         ? 2 * step * b_matrix.leading / (swizzle == 3 ? 2 : 1)
                                         : 32 * step);
        const unsigned a_at = swizzle == 3 || swizzle == 0
                                  ? 2 * step * a_matrix.leading / (swizzle == 3 ? 2 : 1)
                                  : 32 * step;
        const WgmmaOperand b = b_matrix.operand(shared_address(b_begin) + b_at);
        if constexpr (registers) {
            wgmma<format, b_along_n>(c, parts[step], b, step > 0);
        } else {
            wgmma<format, b_along_n>(c, a_matrix.operand(shared_address(a_begin) + a_at), b,
                                     step > 0);
        }
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_settle(c);
    for (unsigned i = 0; i < n / 2; ++i) {
        out[(row + i / 2 % 2 * 8) * n + i / 4 * 8 + 2 * (lane % 4) + i % 2] =
            __float_as_uint(c[i / 4][i % 4]);
    }
}

#endif

}  // namespace jitney::wrappers
