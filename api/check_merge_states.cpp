#include <limits>

#include "api/check.hpp"
#include "api/refuse.hpp"
#include "kernel_sources/attention/merge_states.h"

namespace jitney::checks {
namespace {

constexpr const char* kDims = "[batch, q_len, heads, head_dim] or [total_q, heads, head_dim]";
constexpr const char* kLseDims = "[batch, heads, q_len] or [total_q, heads]";
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// A view without its first dimension where it has that beside those of a result.
Tensor without_parts(const Tensor& tensor, int ndim) {
    if (tensor.ndim != ndim + 1) return tensor;
    Tensor first = tensor;
    first.ndim = ndim;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ndim); ++i) {
        first.shape[i] = tensor.shape[i + 1];
        first.strides[i] = tensor.strides[i + 1];
    }
    return first;
}

// The LSE of a result of this shape.
void check_lse_shape(const Named& lse, const Tensor& out) {
    check_dtype(lse, DType::fp32);
    const auto& shape = out.shape;
    if (out.ndim == 3) {
        check_shape(lse, {shape[0], shape[1]});
    } else {
        check_shape(lse, {shape[0], shape[2], shape[1]});
    }
    check_reach(lse);
}

// Where the result begins on a part, it has to be that part, so that each row is read before it is
// written.
void check_in_place(const Named& out, const Named& part) {
    const Tensor& a = out.tensor;
    const Tensor& b = part.tensor;
    if (a.data != b.data || a.data == nullptr || is_empty(a)) return;
    for (int i = 0; i < a.ndim; ++i) {
        const auto dim = static_cast<std::size_t>(i);
        if (a.shape[dim] <= 1 || a.strides[dim] == b.strides[dim]) continue;
        refuse(
            "{} begins where {} does, and the strides of their dimension {} are {} and {}: make "
            "them equal, to merge in place, or give {} memory of its own",
            out.name, part.name, i, a.strides[dim], b.strides[dim], out.name);
    }
}

std::int64_t check_part(const MergeStatesArgs& args, const PartialState& part, Data data) {
    const Tensor& result = args.out;
    const Named out{"out", result, kDims};
    const std::int64_t count = part.out.ndim == result.ndim + 1 ? part.out.shape[0] : 1;
    const bool several = part.out.ndim == result.ndim + 1;
    if (several != (part.lse.ndim == result.ndim) ||
        (several && part.lse.shape[0] != part.out.shape[0])) {
        refuse(
            "a part's out has {} dimensions and its lse {}, beside an out of {}: both have the "
            "number of parts, equal, as their first dimension, or neither has it",
            part.out.ndim, part.lse.ndim, result.ndim);
    }
    if (several) check_sizes({"a part's out", part.out, kDims}, result.ndim + 1);
    const Tensor first = without_parts(part.out, result.ndim);
    const Tensor first_lse = without_parts(part.lse, result.ndim - 1);
    const Named named{"a part's out", first, kDims};
    const Named lse{"a part's lse", first_lse, kLseDims};
    check_same_dtype(out, named);
    check_same_device(out, named);
    check_same_device(out, lse);
    const auto& shape = result.shape;
    if (result.ndim == 3) {
        check_shape(named, {shape[0], shape[1], shape[2]});
    } else {
        check_shape(named, {shape[0], shape[1], shape[2], shape[3]});
    }
    check_strides({"a part's out", part.out, kDims});
    check_lse_shape(lse, result);
    check_reach({"a part's lse", part.lse, kLseDims});
    if (data == Data::present) {
        check_pointer({"a part's out", part.out, kDims});
        check_pointer({"a part's lse", part.lse, kLseDims});
    }
    check_in_place(out, named);
    check_apart(out, lse);
    if (args.lse) {
        const Named own{"lse", *args.lse, kLseDims};
        check_in_place(own, lse);
        check_apart(own, named);
    }
    return count;
}

}  // namespace

policy::MergeStatesProblem check(const MergeStatesArgs& args, Data data) {
    const Named out{"out", args.out, kDims};
    check_floating(out);
    if (args.out.ndim != 3) check_sizes(out, 4);
    check_sizes(out, args.out.ndim);
    check_strides(out);
    if (data == Data::present) check_pointer(out);
    const std::int64_t head_dim = args.out.shape[static_cast<std::size_t>(args.out.ndim - 1)];
    if (head_dim == 0) refuse("head_dim, the last size of out, is 0; it must be at least 1");
    check_no_overlap(out, args.out.ndim - 1, head_dim);
    if (args.lse) {
        const Named lse{"lse", *args.lse, kLseDims};
        check_same_device(out, lse);
        check_lse_shape(lse, args.out);
        check_no_overlap(lse, args.lse->ndim, 1);
        if (data == Data::present) check_pointer(lse);
        check_apart(lse, out);
    }
    if (args.parts.empty() || args.parts.size() > kMergeSources) {
        refuse("there are {} parts; give 1 to {}, or several partial results in one tensor",
               args.parts.size(), kMergeSources);
    }
    std::int64_t count = 0;
    bool aligned = is_aligned(args.out);
    for (const PartialState& part : args.parts) {
        count += check_part(args, part, data);
        aligned = aligned && is_aligned(part.out);
    }
    if (count < 2 || count > kMaxInt) {
        refuse("there are {} partial results in all; merging takes 2 to {}", count, kMaxInt);
    }

    std::int64_t rows = 1;
    for (int i = 0; i + 1 < args.out.ndim; ++i) {
        const std::int64_t size = args.out.shape[static_cast<std::size_t>(i)];
        if (size != 0 && rows > std::numeric_limits<std::int64_t>::max() / kMaxInt / size) {
            refuse("out has more rows than 64 bits can count: split the batch into several calls");
        }
        rows *= size;
    }
    policy::MergeStatesProblem problem;
    problem.format = static_cast<int>(args.out.dtype);
    problem.rows = rows;
    problem.head_dim = static_cast<int>(head_dim);
    problem.aligned = aligned;
    return problem;
}

}  // namespace jitney::checks
