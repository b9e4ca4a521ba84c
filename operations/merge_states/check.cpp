#include <limits>
#include <optional>

#include "kernel_sources/attention/merge_states.h"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/refuse.hpp"

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

// Those from `first` on, up to `end`, of partial results that lie behind each other.
Tensor some_parts(const Tensor& parts, std::int64_t first, std::int64_t end) {
    Tensor some = parts;
    some.shape[0] = end - first;
    const std::int64_t offset = first * parts.strides[0] * size_of(parts.dtype);
    if (offset != 0) some.data = static_cast<std::byte*>(parts.data) + offset;
    return some;
}

// What is written is one of the partial results, or lies apart from all. Gives the number of the
// one that it is.
std::optional<std::int64_t> check_places(const Named& written, const Named& parts) {
    const int ndim = written.tensor.ndim;
    const auto check_one = [&](const Tensor& part,
                               std::int64_t number) -> std::optional<std::int64_t> {
        const Tensor one = without_parts(part, ndim);
        const Named named{parts.name, one, parts.dims};
        check_in_place(written, named);
        if (one.data == written.tensor.data) return number;
        check_apart(written, named);
        return std::nullopt;
    };
    const Tensor& all = parts.tensor;
    if (is_empty(all)) return std::nullopt;
    if (all.ndim == ndim || all.strides[0] == 0 || all.shape[0] == 1) return check_one(all, 0);
    const std::int64_t step = all.strides[0] * size_of(all.dtype);
    const auto offset =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(written.tensor.data) -
                                  reinterpret_cast<std::uintptr_t>(all.data));
    const std::int64_t own = offset / step;
    if (offset % step != 0 || own < 0 || own >= all.shape[0]) {
        check_apart(written, parts);
        return std::nullopt;
    }
    check_apart(written, {parts.name, some_parts(all, 0, own), parts.dims});
    check_apart(written, {parts.name, some_parts(all, own + 1, all.shape[0]), parts.dims});
    return check_one(some_parts(all, own, own + 1), own);
}

// Which of the parts the result and its LSE are written to.
struct InPlace {
    bool out = false;
    bool lse = false;
    bool both = false;  // those of one part

    void check(bool lse_wanted) const {
        if (both || (!out && !lse)) return;
        if (out && !lse_wanted) {
            refuse(
                "out is a part's out, and lse was left out, so that the part would keep the LSE of "
                "what it was: give that part's lse too, or give out memory of its own");
        }
        refuse(
            "{} is a part's, and {} is not that part's: in place, give out and lse of one part, or "
            "give both memory of their own",
            out ? "out" : "lse", out ? "lse" : "out");
    }
};

std::int64_t check_part(const MergeStatesArgs& args, const PartialState& part, InPlace& in_place,
                        Data data) {
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
    check_pointer({"a part's out", part.out, kDims}, data);
    check_pointer({"a part's lse", part.lse, kLseDims}, data);
    if (data == Data::absent) return count;
    const auto own_out = check_places(out, {"a part's out", part.out, kDims});
    check_apart(out, {"a part's lse", part.lse, kLseDims});
    in_place.out = in_place.out || own_out;
    if (args.lse) {
        const Named own{"lse", *args.lse, kLseDims};
        const auto own_lse = check_places(own, {"a part's lse", part.lse, kLseDims});
        check_apart(own, {"a part's out", part.out, kDims});
        in_place.lse = in_place.lse || own_lse;
        in_place.both = in_place.both || (own_out && own_out == own_lse);
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
    check_pointer(out, data);
    const std::int64_t head_dim = args.out.shape[static_cast<std::size_t>(args.out.ndim - 1)];
    if (head_dim == 0) refuse("head_dim, the last size of out, is 0; it must be at least 1");
    check_no_overlap(out);
    if (args.lse) {
        const Named lse{"lse", *args.lse, kLseDims};
        check_same_device(out, lse);
        check_lse_shape(lse, args.out);
        check_no_overlap(lse);
        check_pointer(lse, data);
        if (data != Data::absent) check_apart(lse, out);
    }
    if (args.parts.empty() || args.parts.size() > kMergeSources) {
        refuse("there are {} parts; give 1 to {}, or several partial results in one tensor",
               args.parts.size(), kMergeSources);
    }
    std::int64_t count = 0;
    bool aligned = is_aligned(args.out);
    InPlace in_place;
    for (const PartialState& part : args.parts) {
        count += check_part(args, part, in_place, data);
        aligned = aligned && is_aligned(part.out);
    }
    in_place.check(args.lse.has_value());
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
