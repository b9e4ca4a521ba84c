// One kernel for each wrapper of an instruction in kernel_sources/common: what it does shows in
// memory, and nothing else does. NVRTC compiles this text for the GPU, with the wrappers, and the
// host's compiler for the emulator, with their twins; cases.cpp says what has to come out of both.
// Numbers come and go as words of 32 bits.
#include "common/atomics.cuh"
#include "common/builtins.cuh"
#include "common/convert.cuh"
#include "common/fp8.cuh"
#include "common/grid_dependency.cuh"
#include "common/nan_max.cuh"
#include "common/numeric.cuh"
#include "common/shared.cuh"
#if __CUDA_ARCH__ >= 800
#include "common/cp_async.cuh"
#include "common/ldmatrix.cuh"
#include "common/mma.cuh"
#endif
#if __CUDA_ARCH__ >= 890
#include "common/fp8_mma.cuh"
#endif

namespace jitney::wrappers {

JITNEY_DEVICE unsigned global_thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// Of each pair of floats: fp16 and bf16 of the first and back, and what packs two.
__global__ void to_16_bits(const unsigned* in, unsigned* out) {
    const unsigned i = global_thread();
    const float low = __uint_as_float(in[2 * i]);
    const float high = __uint_as_float(in[2 * i + 1]);
    out[6 * i] = fp16_bits(low);
    out[6 * i + 1] = bf16_bits(low);
    out[6 * i + 2] = __float_as_uint(fp16_value(static_cast<unsigned short>(in[2 * i] >> 16)));
    out[6 * i + 3] = __float_as_uint(bf16_value(static_cast<unsigned short>(in[2 * i] >> 16)));
#if __CUDA_ARCH__ >= 800
    out[6 * i + 4] = fp16_pair(low, high);
    out[6 * i + 5] = bf16_pair(low, high);
#endif
}

// Of each pair of floats their codes.
__global__ void to_8_bits(const unsigned* in, unsigned* out) {
    const unsigned i = global_thread();
    const float low = __uint_as_float(in[2 * i]);
    const float high = __uint_as_float(in[2 * i + 1]);
    out[4 * i] = fp8_pair<kFp8E4m3>(low, high);
    out[4 * i + 1] = fp8_pair<kFp8E5m2>(low, high);
    out[4 * i + 2] = fp8_bits<kFp8E4m3>(low);
    out[4 * i + 3] = fp8_bits<kFp8E5m2>(low);
}

__global__ void fast_functions(const unsigned* in, unsigned* out) {
    const unsigned i = global_thread();
    const float x = __uint_as_float(in[i]);
    out[4 * i] = __float_as_uint(exp2_fast(x));
    out[4 * i + 1] = __float_as_uint(log2_fast(x));
    out[4 * i + 2] = __float_as_uint(reciprocal_fast(x));
    out[4 * i + 3] = __float_as_uint(max_or_nan(x, __uint_as_float(in[i ^ 1])));
}

// The indices, a value that goes through settle(), and the shared address of a byte by its number.
__global__ void places(const unsigned* in, unsigned* out) {
    const unsigned i = global_thread();
    unsigned value = in[i];
    settle(value);
    out[4 * i] = value;
    out[4 * i + 1] = static_cast<unsigned>(reread_block_index());
    out[4 * i + 2] = static_cast<unsigned>(reread_thread_index());
    out[4 * i + 3] =
        shared_address(shared_memory() + threadIdx.x) - shared_address(shared_memory());
}

// A block has a row of `out`: first what it saw of the rows of the others before it wrote its own,
// so that their lines are in its cache as they were; last, in the block whose count was the last,
// how many rows of the others it does not see. out: [blocks, 3], old counts, and a counter behind.
__global__ void counted(const unsigned* in, unsigned* out) {
    if (threadIdx.x != 0) return;
    const unsigned blocks = gridDim.x;
    unsigned before = 0;
    for (unsigned i = 0; i < blocks; ++i)
        before += out[3 * i];
    out[3 * blockIdx.x + 1] = before;
    out[3 * blockIdx.x] = in[0];
    const unsigned old = atomic_inc_acq_rel(out + 3 * blocks, blocks - 1);
    out[3 * blockIdx.x + 2] = old;
    if (old != blocks - 1) return;
    unsigned missing = 0;
    for (unsigned i = 0; i < blocks; ++i)
        missing += out[3 * i] == in[0] ? 0u : 1u;
    out[3 * blocks + 1] = missing;
}

#if __CUDA_ARCH__ >= 800

// A warp loads the four matrices of `in`, whose rows are 16 bytes each, one behind the other.
template <bool transposed>
__global__ void load_matrices(const unsigned* in, unsigned* out) {
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    for (unsigned i = threadIdx.x; i < 4 * 32; i += 32)
        shared[i] = in[i];
    __syncwarp();
    unsigned matrices[4];
    const SharedAddress row = shared_address(shared + 4 * threadIdx.x);
    if (transposed) {
        ldmatrix_x4_transposed(matrices, row);
    } else {
        ldmatrix_x4(matrices, row);
    }
    for (unsigned i = 0; i < 4; ++i)
        out[4 * threadIdx.x + i] = matrices[i];
}

// A warp: the product of a [16, 16] and the columns of b [8, 16], added to c [16, 8], which stand
// one behind the other in `in`.
template <int format>
__global__ void multiply_16_bits(const unsigned* in, unsigned* out) {
    const unsigned row = threadIdx.x / 4;
    const unsigned pair = threadIdx.x % 4;
    const unsigned* const b = in + 128;
    const unsigned* const c = b + 64;
    const unsigned a[4] = {in[row * 8 + pair], in[(row + 8) * 8 + pair], in[row * 8 + pair + 4],
                           in[(row + 8) * 8 + pair + 4]};
    float sums[4];
    for (unsigned i = 0; i < 4; ++i)
        sums[i] = __uint_as_float(c[(row + i / 2 * 8) * 8 + 2 * pair + i % 2]);
    mma_m16n8k16<format>(sums, a, b[row * 8 + pair], b[row * 8 + pair + 4]);
    for (unsigned i = 0; i < 4; ++i)
        out[(row + i / 2 * 8) * 8 + 2 * pair + i % 2] = __float_as_uint(sums[i]);
}

// Thread i copies pieces of 16, i % 17 and 4 bytes, or none where i % 3 is 0, to memory that is
// full of ones. in: 9 words a thread, and three more; out: the same.
__global__ void copies(const unsigned* in, unsigned* out) {
    const unsigned threads = blockDim.x;
    const unsigned i = threadIdx.x;
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    for (unsigned word = i; word < 12 * threads; word += threads)
        shared[word] = 0xffffffffu;
    __syncthreads();
    const bool valid = i % 3 != 0;
    cp_async_16(shared_address(shared + 12 * i), in + 12 * i, valid);
    cp_async_16_part(shared_address(shared + 12 * i + 4), in + 12 * i + 4,
                     static_cast<int>(i % 17));
    cp_async_4(shared_address(shared + 12 * i + 8), in + 12 * i + 8, valid);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    for (unsigned word = i; word < 12 * threads; word += threads) {
        // Of the last four words of a thread one alone is copied.
        if (word % 12 < 9) out[word] = shared[word];
    }
}

// Every thread has `groups` groups of one copy, and takes of each what its neighbour copied as soon
// as it is said to be there.
template <int pending>
__global__ void groups_of_copies(const unsigned* in, unsigned* out) {
    constexpr int groups = 8;
    const unsigned threads = blockDim.x;
    const unsigned i = threadIdx.x;
    const unsigned neighbour = i ^ 1u;
    unsigned* const shared = reinterpret_cast<unsigned*>(shared_memory());
    const auto at = [&](int group, unsigned thread) {
        return 4 * (static_cast<unsigned>(group) * threads + thread);
    };
    const auto from = [&](int group, unsigned thread) {
        return 4 * ((static_cast<unsigned>(group) * gridDim.x + blockIdx.x) * threads + thread);
    };
    for (int group = 0; group < groups + pending; ++group) {
        if (group < groups) {
            cp_async_16(shared_address(shared + at(group, i)), in + from(group, i), true);
        }
        cp_async_commit();
        if (group < pending) continue;
        cp_async_wait<pending>();
        __syncthreads();
        for (unsigned word = 0; word < 4; ++word) {
            out[from(group - pending, neighbour) + word] =
                shared[at(group - pending, neighbour) + word];
        }
    }
}

#endif

#if __CUDA_ARCH__ >= 890

// The same as multiply_16_bits of a [16, 32] and b [8, 32].
template <int format_a, int format_b>
__global__ void multiply_8_bits(const unsigned* in, unsigned* out) {
    const unsigned row = threadIdx.x / 4;
    const unsigned four = threadIdx.x % 4;
    const unsigned* const b = in + 128;
    const unsigned* const c = b + 64;
    const unsigned a[4] = {in[row * 8 + four], in[(row + 8) * 8 + four], in[row * 8 + four + 4],
                           in[(row + 8) * 8 + four + 4]};
    float sums[4];
    for (unsigned i = 0; i < 4; ++i)
        sums[i] = __uint_as_float(c[(row + i / 2 * 8) * 8 + 2 * four + i % 2]);
    mma_m16n8k32<format_a, format_b>(sums, a, b[row * 8 + four], b[row * 8 + four + 4]);
    for (unsigned i = 0; i < 4; ++i)
        out[(row + i / 2 * 8) * 8 + 2 * four + i % 2] = __float_as_uint(sums[i]);
}

// Four codes a word, as fp16.
__global__ void from_8_bits(const unsigned* in, unsigned* out) {
    const unsigned i = global_thread();
    out[4 * i] = fp8_unpack<kFp8E4m3, false>(in[i]);
    out[4 * i + 1] = fp8_unpack<kFp8E4m3, true>(in[i]);
    out[4 * i + 2] = fp8_unpack<kFp8E5m2, false>(in[i]);
    out[4 * i + 3] = fp8_unpack<kFp8E5m2, true>(in[i]);
}

#endif

}  // namespace jitney::wrappers
