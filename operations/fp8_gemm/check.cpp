#include <algorithm>

#include "core/arithmetic.hpp"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/fp8_gemm/check_scales.hpp"
#include "operations/fp8_gemm/fields.hpp"
#include "operations/fp8_gemm/tensor_maps.hpp"
#include "operations/own_workspace.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kNumber = "one fp32";

// A matrix whose rows are contiguous and may lie at any distance, or one a group.
void check_matrix(const Named& a, const Named& matrix, Data data, int ndim = 2) {
    check_same_device(a, matrix);
    check_sizes(matrix, ndim);
    check_strides(matrix);
    check_pointer(matrix, data);
}

// One row, or one a group.
void check_bias(const Named& a, const Named& bias, std::int64_t groups, std::int64_t n, Data data) {
    check_bias_dtype(bias);
    check_same_device(a, bias);
    if (groups > 0 && bias.tensor.ndim == 2) {
        check_sizes(bias, 2);
        check_shape(bias, {groups, n});
    } else {
        check_sizes(bias, 1);
        check_shape(bias, {n});
    }
    check_strides(bias);
    check_pointer(bias, data);
}

// The number of groups; 0 where rows belong to none.
std::int64_t check_groups(const Fp8GemmArgs& args, const Named& a, Data data) {
    if (!args.group_indptr) return 0;
    const Named indptr{"group_indptr", *args.group_indptr, "[groups + 1]"};
    check_dtype(indptr, DType::int32);
    check_same_device(a, indptr);
    check_sizes(indptr, 1);
    check_strides(indptr);
    check_pointer(indptr, data);
    if (indptr.tensor.shape[0] < 2) {
        refuse("group_indptr has the shape {}; it must be [groups + 1] of at least one group",
               shape_text(indptr.tensor));
    }
    if (args.trans_a) {
        refuse("group_indptr is given with trans_a: give a as [m, k], whose rows it divides");
    }
    return indptr.tensor.shape[0] - 1;
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
    const Named out{"out", args.out, "[m, n]"};
    check_fp8(a);
    check_matrix(a, a, data);
    const std::int64_t groups = check_groups(args, a, data);
    const Named b{"b", args.b,
                  groups == 0 ? args.trans_b ? "[n, k]" : "[k, n]"
                              : (args.trans_b ? "[groups, n, k]" : "[groups, k, n]")};
    check_fp8(b);
    check_matrix(a, b, data, groups == 0 ? 2 : 3);
    check_out(args, a, data);
    const std::int64_t m = args.a.shape[args.trans_a ? 1 : 0];
    const std::int64_t k = args.a.shape[args.trans_a ? 0 : 1];
    const std::size_t of_b = groups == 0 ? 0 : 1;  // the first dimension of one matrix
    const std::int64_t n = args.b.shape[of_b + (args.trans_b ? 0 : 1)];
    const std::int64_t k_of_b = args.b.shape[of_b + (args.trans_b ? 1 : 0)];
    if (k_of_b != k) {
        refuse("a has k {} and b {}: a is {}, with trans_a {}, and b is {}, with trans_b {}", k,
               k_of_b, a.dims, args.trans_a, b.dims, args.trans_b);
    }
    if (groups != 0 && args.b.shape[0] != groups) {
        refuse(
            "b has the shape {} and group_indptr {} numbers: it must have one more than b has "
            "groups",
            shape_text(args.b), groups + 1);
    }
    if (groups != 0 && product(groups, n) > kMostOfFp8Gemm) {
        refuse("b has {} groups of {} columns, and may have {} in all: split the call", groups, n,
               kMostOfFp8Gemm);
    }
    if (std::max({m, n, k}) > kMostOfFp8Gemm) {
        refuse("m, n and k are {}, {} and {}, and must be at most {}: split the call", m, n, k,
               kMostOfFp8Gemm);
    }
    check_matrix(a, out, data);
    check_shape(out, {m, n});
    check_no_overlap(out);
    const Fp8Scales scales = check_scales(args, a, {m, n, k, groups}, data);
    if (args.bias) {
        check_bias(a, {"bias", *args.bias, groups == 0 ? "[n]" : "[n] or [groups, n]"}, groups, n,
                   data);
    }
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
    problem.groups = groups;
    problem.amax = args.amax.has_value();
    problem.aligned = is_aligned(args.a) && is_aligned(args.b);
    problem.out_aligned = is_aligned(args.out);
    problem.mapped =
        rows_can_be_mapped(args.a) && groups_can_be_mapped(args.b) && rows_can_be_mapped(args.out);
    return problem;
}

}  // namespace jitney::checks
