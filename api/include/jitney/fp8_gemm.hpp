// Products of FP8 matrices on the tensor cores.
#pragma once

#include <cstddef>
#include <optional>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"
#include "jitney/workspace.hpp"

namespace jitney {

// out[m, n] = op(a)[m, k] op(b)[k, n] * dequant_scale + bias[n], or, with finer scales,
// out[m, n] = sum over k of op(a)[m, k] * scale_a * op(b)[k, n] * scale_b + bias[n]
//
// Rows may lie at any distance and begin at any address; where one of a or b does not begin at a
// multiple of 16 bytes, the call takes a slower path. m, n and k are up to 2147418112; k = 0 gives
// the bias, or zeros, whatever the scales are.
struct Fp8GemmArgs {
    Tensor a;    // e4m3 or e5m2: [m, k], or [k, m] with trans_a
    Tensor b;    // e4m3 or e5m2, not necessarily a's: [k, n], or [n, k] with trans_b
    Tensor out;  // [m, n]: bf16, fp16, fp32, e4m3 or e5m2; overlaps nothing else
    // One fp32: what turns products of codes into products of numbers.
    std::optional<Tensor> dequant_scale;
    // In its place, both of them: what turns codes of a, and those of b, into numbers. They are
    // fp32, with any strides, so that either order of the dimensions in memory will do. How many
    // dimensions they have says what a number is for:
    //   none, or [1]     all of a matrix;
    //   [m] and [n]      a row of op(a) and a column of op(b); [1] beside either of them;
    //   [m, ceil(k / 128)] and [ceil(n / 128), ceil(k / 128)], always together
    //                    a row of op(a), and 128 columns of op(b), by 128 of k: sums of each 128 of
    //                    k are multiplied by both scales and added up in fp32, whatever fast_accum
    //                    is.
    // So [m, 1] is of blocks, with a k of up to 128, and one a row is [m]. The product of a scale
    // of a and one of b has to be a number that fp32 holds.
    std::optional<Tensor> scale_a;
    std::optional<Tensor> scale_b;
    std::optional<Tensor> bias;  // [n]: bf16 or fp32
    // One fp32 each, with an output in FP8 and only there. out_multiplier, which it needs: the
    // codes are those of result * out_multiplier, saturated. amax, which overlaps nothing else: the
    // largest |result| is written to it, NaN where one is NaN, and 0 where m or n is 0.
    std::optional<Tensor> out_multiplier;
    std::optional<Tensor> amax;
    // Products of a mixture of experts: rows of a belong to groups, and each group has a matrix b
    // of its own. int32 [groups + 1] on the device: rows [group_indptr[g], group_indptr[g + 1])
    // belong to group g, of which any may be empty; it does not fall, begins at 0 or more, and ends
    // at m or less. Rows of out that belong to no group are not written. What belongs to b has the
    // groups as its first dimension then: b is [groups, k, n], or [groups, n, k] with trans_b;
    // scale_b is [groups], [groups, n] or [groups, ceil(n / 128), ceil(k / 128)], or one number for
    // all; bias is [groups, n], or [n] for all. trans_a does not go with it.
    std::optional<Tensor> group_indptr;
    bool trans_a = false;
    bool trans_b = false;
    // Where the tensor cores have a unit for FP8 (sm_89, sm_90a, sm_120), its own sums are short,
    // and those of every 128 of k are added up in fp32 beside it; this leaves them to the unit,
    // which is faster. Elsewhere, and in layouts that the unit of sm_90a does not take, sums are as
    // exact as fp32, and it changes nothing.
    bool fast_accum = false;
    // The caller's memory for the partial sums of a k that is divided among blocks and the counters
    // behind amax; else the library's own, which a captured call has to allocate in its graph.
    Workspace workspace = {};
};

// How large a workspace of the caller's has to be for this call; 0 where it needs none.
JITNEY_API std::size_t workspace_bytes(const Fp8GemmArgs& args);

// Multiplies; asynchronous on `stream` for tensors on a GPU, which has to have FP8 tensor cores
// (sm_89 or newer), on the reference backend for host tensors. All memory, that of scales and
// out_multiplier too, is on one device. Throws Error before anything is launched.
JITNEY_API void fp8_gemm(const Fp8GemmArgs& args, Stream stream = nullptr);

namespace ops {
// fp8_gemm_mma, which takes every layout, or an Error that says why not: host tensors are refused.
JITNEY_API void fp8_gemm(const Fp8GemmArgs& args, Stream stream = nullptr);
}  // namespace ops

}  // namespace jitney
