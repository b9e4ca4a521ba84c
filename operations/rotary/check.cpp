#include <limits>

#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/check_enum.hpp"
#include "operations/refuse.hpp"
#include "operations/rotary/check_tensors.hpp"
#include "operations/rotary/fields.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kDims = "[batch, length, heads, head_dim]";
constexpr const char* kTableDims = "[positions, rotary_dim / 2]";
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

bool is_same_view(const Tensor& a, const Tensor& b) noexcept {
    return a.data == b.data && a.strides == b.strides;
}

bool is_aligned_call(const RotaryArgs& args) noexcept {
    return is_aligned(args.q) && is_aligned(args.q_out) &&
           (!args.k || (is_aligned(*args.k) && is_aligned(*args.k_out))) && is_aligned(args.cos) &&
           is_aligned(args.sin);
}

}  // namespace

void check_rotated(const Named& q, const Named& x, const Named& out, Data data) {
    for (const Named* tensor : {&x, &out}) {
        check_same_dtype(q, *tensor);
        check_same_device(q, *tensor);
        check_sizes(*tensor, 4);
        check_strides(*tensor);
        check_pointer(*tensor, data);
    }
    const auto& shape = x.tensor.shape;
    check_shape(out, {shape[0], shape[1], shape[2], shape[3]});
    check_no_overlap(out);
}

void check_tables(const Named& q, const Named& cos, const Named& sin, Data data) {
    for (const Named* table : {&cos, &sin}) {
        check_dtype(*table, DType::fp32);
        check_same_device(q, *table);
        check_sizes(*table, 2);
        check_strides(*table);
        check_pointer(*table, data);
    }
    check_shape(sin, {cos.tensor.shape[0], cos.tensor.shape[1]});
    const std::int64_t rotary_dim = 2 * cos.tensor.shape[1];
    const std::int64_t head_dim = q.tensor.shape[3];
    if (rotary_dim == 0) refuse("cos has no columns; it must have rotary_dim / 2, at least 1");
    if (cos.tensor.shape[0] > 1 && cos.tensor.strides[0] != sin.tensor.strides[0]) {
        refuse("the rows of cos are {} elements apart and those of sin {}; they must be equal",
               cos.tensor.strides[0], sin.tensor.strides[0]);
    }
    if (rotary_dim > head_dim) {
        refuse(
            "cos has {} columns, for a rotary_dim of {}, more than the head_dim of {}, which is "
            "{}: make the tables narrower",
            cos.tensor.shape[1], rotary_dim, q.name, head_dim);
    }
}

void check_table_length(const Named& x, const Named& cos) {
    if (x.tensor.shape[1] <= cos.tensor.shape[0]) return;
    refuse("{} has {} rows and cos only {}: make the tables longer, or give positions", x.name,
           x.tensor.shape[1], cos.tensor.shape[0]);
}

void check_style(RotaryStyle style) {
    check_enum<RotaryStyle>(
        "style", style,
        {{RotaryStyle::interleaved, "interleaved"}, {RotaryStyle::half_split, "half_split"}});
}

void check_positions(const Named& q, const Named& positions, Data data) {
    const Tensor& tensor = positions.tensor;
    if (tensor.dtype != DType::int32 && tensor.dtype != DType::int64) {
        refuse("positions has the dtype {}; it must be int32 or int64", name_of(tensor.dtype));
    }
    check_same_device(q, positions);
    if (tensor.ndim != 1) check_sizes(positions, 2);
    check_reach(positions);
    const std::int64_t length = q.tensor.shape[1];
    if (tensor.ndim == 1) {
        check_shape(positions, {length});
    } else {
        check_broadcast(positions, 0, q.tensor.shape[0]);
        check_shape(positions, {tensor.shape[0], length});
    }
    check_pointer(positions, data);
}

bool is_in_place(const RotaryArgs& args) noexcept {
    return is_same_view(args.q, args.q_out) && (!args.k || is_same_view(*args.k, *args.k_out));
}

policy::RotaryProblem check(const RotaryArgs& args, Data data) {
    const Named q{"q", args.q, kDims};
    const Named q_out{"q_out", args.q_out, kDims};
    check_floating(q);
    check_rotated(q, q, q_out, data);
    check_style(args.style);
    if (args.k.has_value() != args.k_out.has_value()) {
        refuse("{} was given without {}; give both or neither", args.k ? "k" : "k_out",
               args.k ? "k_out" : "k");
    }
    const auto& shape = args.q.shape;
    std::int64_t heads = shape[2];
    if (args.k) {
        const Named k{"k", *args.k, kDims};
        const Named k_out{"k_out", *args.k_out, kDims};
        check_rotated(q, k, k_out, data);
        check_shape(k, {shape[0], shape[1], args.k->shape[2], shape[3]});
        heads += args.k->shape[2];
    }
    check_tables(q, {"cos", args.cos, kTableDims}, {"sin", args.sin, kTableDims}, data);
    if (args.positions) {
        check_positions(q, {"positions", *args.positions, "[length] or [batch, length]"}, data);
    } else {
        check_table_length(q, {"cos", args.cos, kTableDims});
    }
    const std::int64_t tokens = shape[0] * shape[1];
    if (tokens > kMaxInt) {
        refuse(
            "batch {} times length {} are {} tokens, more than {}: split the batch into several "
            "calls",
            shape[0], shape[1], tokens, kMaxInt);
    }
    if (heads * shape[3] > kMaxInt) {
        refuse(
            "{} heads of head_dim {} are {} elements a token, more than {}: split the heads "
            "into several calls",
            heads, shape[3], heads * shape[3], kMaxInt);
    }

    if (data != Data::absent) {
        check_in_place({"q_out", args.q_out, kDims}, q);
        if (args.k) check_in_place({"k_out", *args.k_out, kDims}, {"k", *args.k, kDims});
        check_memory(args);
    }

    policy::RotaryProblem problem;
    problem.format = static_cast<int>(args.q.dtype);
    problem.style = static_cast<int>(args.style);
    problem.tokens = tokens;
    problem.heads = static_cast<int>(heads);
    problem.head_dim = static_cast<int>(shape[3]);
    problem.rotary_dim = static_cast<int>(2 * args.cos.shape[1]);
    problem.in_place = args.q.data != nullptr && is_in_place(args);
    problem.aligned = is_aligned_call(args);
    return problem;
}

}  // namespace jitney::checks
