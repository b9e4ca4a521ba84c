#include <algorithm>

#include "core/arithmetic.hpp"
#include "kernel_sources/fp8/gemm_params.h"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/fp8_gemm/fields.hpp"
#include "operations/fp8_gemm/tensor_maps.hpp"
#include "operations/own_workspace.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kNumber = "one fp32";
constexpr const char* kBias = "[n]";

// A matrix whose rows are contiguous and may lie at any distance.
void check_matrix(const Named& a, const Named& matrix, Data data) {
    check_same_device(a, matrix);
    check_sizes(matrix, 2);
    check_strides(matrix);
    check_pointer(matrix, data);
}

void check_scalar(const Named& a, const Named& number, Data data) {
    check_number(number);
    check_same_device(a, number);
    check_pointer(number, data);
}

// A scale of one number, of one a row of A or a column of B, or of one a block: the number of
// dimensions tells which. `side` is m or n, `whose` what it counts, and `side_blocks` and
// `k_blocks` how many blocks there are.
void check_scale(const Named& a, const Named& scale, std::int64_t side, const char* whose,
                 std::int64_t side_blocks, std::int64_t k_blocks, Data data) {
    check_dtype(scale, DType::fp32);
    check_same_device(a, scale);
    const int ndim = scale.tensor.ndim;
    if (ndim < 0 || ndim > 2) {
        refuse("{} has {} dimensions; it must have at most two: {}", scale.name, ndim, scale.dims);
    }
    check_sizes(scale, ndim);
    const auto& shape = scale.tensor.shape;
    if (ndim == 1 && shape[0] != 1 && shape[0] != side) {
        refuse("{} has the shape {}; with one dimension it must be [1], or [{}], one number a {}",
               scale.name, shape_text(scale.tensor), side, whose);
    }
    if (ndim == 2 && (shape[0] != side_blocks || shape[1] != k_blocks)) {
        refuse(
            "{} has the shape {}; with two dimensions it must be [{}, {}], one number a block: "
            "give "
            "one number a {} as [{}]",
            scale.name, shape_text(scale.tensor), side_blocks, k_blocks, whose, side);
    }
    check_reach(scale);
    check_pointer(scale, data);
}

// Returns which kind of scales there are.
Fp8Scales check_scales(const Fp8GemmArgs& args, const Named& a, std::int64_t m, std::int64_t n,
                       std::int64_t k, Data data) {
    if (args.dequant_scale) {
        if (args.scale_a || args.scale_b) {
            refuse(
                "dequant_scale and {} are both given: give dequant_scale alone, or scale_a and "
                "scale_b, which stand in its place",
                args.scale_a ? "scale_a" : "scale_b");
        }
        check_scalar(a, {"dequant_scale", *args.dequant_scale, kNumber}, data);
        return kOneScale;
    }
    if (!args.scale_a && !args.scale_b)
        refuse("there is no scale: give dequant_scale, or scale_a and scale_b");
    if (!args.scale_a || !args.scale_b) {
        refuse("{} is given without {}: give both, of which either may be one number",
               args.scale_a ? "scale_a" : "scale_b", args.scale_a ? "scale_b" : "scale_a");
    }
    const Named scale_a{"scale_a", *args.scale_a, "[1], [m] or [m, ceil(k / 128)]"};
    const Named scale_b{"scale_b", *args.scale_b, "[1], [n] or [ceil(n / 128), ceil(k / 128)]"};
    const std::int64_t k_blocks = ceil_div(k, kFp8ScaleBlock);
    check_scale(a, scale_a, m, "row of a", m, k_blocks, data);
    check_scale(a, scale_b, n, "column of b", ceil_div(n, kFp8ScaleBlock), k_blocks, data);
    const bool blocks = scale_a.tensor.ndim == 2;
    if (blocks != (scale_b.tensor.ndim == 2)) {
        refuse(
            "scale_a has the shape {} and scale_b {}: blocks along k, which have two dimensions, "
            "must be given for both",
            shape_text(scale_a.tensor), shape_text(scale_b.tensor));
    }
    return blocks ? kBlockScales : kSideScales;
}

void check_bias(const Named& a, const Named& bias, std::int64_t n, Data data) {
    check_bias_dtype(bias);
    check_same_device(a, bias);
    check_sizes(bias, 1);
    check_shape(bias, {n});
    check_strides(bias);
    check_pointer(bias, data);
}

void check_out(const Fp8GemmArgs& args, const Named& a, Data data) {
    const DType dtype = args.out.dtype;
    const bool fp8 = dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2;
    if (!fp8 && dtype != DType::bf16 && dtype != DType::fp16 && dtype != DType::fp32) {
        refuse("out has the dtype {}; it must be bf16, fp16, fp32, {} or {}", name_of(dtype),
               name_of(DType::fp8_e4m3), name_of(DType::fp8_e5m2));
    }
    if (fp8 != args.out_multiplier.has_value()) {
        if (fp8) {
            refuse(
                "out has the dtype {}, and there is no out_multiplier: give the number that brings "
                "results into its range",
                name_of(dtype));
        }
        refuse(
            "out_multiplier goes with an output in FP8, and out has the dtype {}: leave it out, "
            "or fold it into the scales",
            name_of(dtype));
    }
    if (args.out_multiplier)
        check_scalar(a, {"out_multiplier", *args.out_multiplier, kNumber}, data);
    if (args.amax) {
        if (!fp8) {
            refuse("amax goes with an output in FP8, and out has the dtype {}: leave it out",
                   name_of(dtype));
        }
        check_scalar(a, {"amax", *args.amax, kNumber}, data);
    }
}

}  // namespace

policy::Fp8GemmProblem check(const Fp8GemmArgs& args, Data data) {
    const Named a{"a", args.a, args.trans_a ? "[k, m]" : "[m, k]"};
    const Named b{"b", args.b, args.trans_b ? "[n, k]" : "[k, n]"};
    const Named out{"out", args.out, "[m, n]"};
    check_fp8(a);
    check_fp8(b);
    check_matrix(a, a, data);
    check_matrix(a, b, data);
    check_out(args, a, data);
    const std::int64_t m = args.a.shape[args.trans_a ? 1 : 0];
    const std::int64_t k = args.a.shape[args.trans_a ? 0 : 1];
    const std::int64_t n = args.b.shape[args.trans_b ? 0 : 1];
    if (args.b.shape[args.trans_b ? 1 : 0] != k) {
        refuse("a has k {} and b {}: a is {}, with trans_a {}, and b is {}, with trans_b {}", k,
               args.b.shape[args.trans_b ? 1 : 0], a.dims, args.trans_a, b.dims, args.trans_b);
    }
    if (std::max({m, n, k}) > kMostOfFp8Gemm) {
        refuse("m, n and k are {}, {} and {}, and must be at most {}: split the call", m, n, k,
               kMostOfFp8Gemm);
    }
    check_matrix(a, out, data);
    check_shape(out, {m, n});
    check_no_overlap(out);
    const Fp8Scales scales = check_scales(args, a, m, n, k, data);
    if (args.bias) check_bias(a, {"bias", *args.bias, kBias}, n, data);
    if (data != Data::absent) {
        check_given(args.workspace);
        check_memory(args);
    }

    policy::Fp8GemmProblem problem;
    problem.a = static_cast<int>(args.a.dtype);
    problem.b = static_cast<int>(args.b.dtype);
    problem.out = static_cast<int>(args.out.dtype);
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.trans_a = args.trans_a;
    problem.trans_b = args.trans_b;
    problem.fast_accum = args.fast_accum;
    problem.scales = scales;
    problem.amax = args.amax.has_value();
    problem.aligned = is_aligned(args.a) && is_aligned(args.b);
    problem.out_aligned = is_aligned(args.out);
    problem.mapped =
        rows_can_be_mapped(args.a) && rows_can_be_mapped(args.b) && rows_can_be_mapped(args.out);
    return problem;
}

}  // namespace jitney::checks
