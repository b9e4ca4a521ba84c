#include <cmath>
#include <limits>

#include "api/check.hpp"
#include "api/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr const char* kQueryDims = "[batch, q_len, q_heads, head_dim]";
constexpr const char* kKeyDims = "[batch, kv_len, kv_heads, head_dim]";
// Kernels count rows and keys in 31 bits, and go beyond the last one by at most a tile.
constexpr std::int64_t kMaxRows = std::numeric_limits<std::int32_t>::max() - 4096;

void check_heads(const Tensor& q, const Tensor& k) {
    const std::int64_t q_heads = q.shape[2];
    const std::int64_t kv_heads = k.shape[2];
    if (kv_heads == 0 ? q_heads == 0 : q_heads % kv_heads == 0) return;
    refuse("q has {} heads and k has {}; the heads of k must divide those of q", q_heads, kv_heads);
}

void check_limits(const policy::AttentionProblem& problem) {
    if (problem.head_dim == 0) refuse("head_dim, the last size of q, is 0; it must be at least 1");
    if (problem.kv_len > kMaxRows) {
        refuse("kv_len is {}, more than {}: attend to the keys in parts", problem.kv_len, kMaxRows);
    }
    if (problem.kv_heads == 0) return;
    const std::int64_t rows = std::int64_t{problem.q_len} * problem.group();
    if (rows > kMaxRows) {
        refuse(
            "q_len {} times {} query heads a KV head are {} rows, more than {}: split the "
            "queries into several calls",
            problem.q_len, problem.group(), rows, kMaxRows);
    }
    const std::int64_t heads = std::int64_t{problem.batch} * problem.kv_heads;
    if (heads > std::numeric_limits<std::int32_t>::max()) {
        refuse(
            "batch {} times {} KV heads are {}, more than {}: split the batch into several "
            "calls",
            problem.batch, problem.kv_heads, heads, std::numeric_limits<std::int32_t>::max());
    }
}

void check_mask(const Named& named, const policy::AttentionProblem& problem) {
    const Tensor& mask = named.tensor;
    check_dtype(named, DType::boolean);
    if (mask.ndim < 2 || mask.ndim > 4) {
        refuse("mask has {} dimensions; it must be {}", mask.ndim, named.dims);
    }
    check_sizes(named, mask.ndim);
    const int last = mask.ndim - 1;
    check_broadcast(named, 0, problem.batch);
    if (mask.ndim == 4) check_broadcast(named, 1, problem.q_heads);
    if (mask.ndim >= 3) check_broadcast(named, last - 1, problem.q_len);
    if (mask.shape[static_cast<std::size_t>(last)] != problem.kv_len) {
        refuse("the last size of mask is {}; it must be kv_len, which is {}: mask is {}",
               mask.shape[static_cast<std::size_t>(last)], problem.kv_len, named.dims);
    }
    check_strides(named);
}

void check_lse(const Named& named, const policy::AttentionProblem& problem) {
    check_dtype(named, DType::fp32);
    check_sizes(named, 3);
    check_shape(named, {problem.batch, problem.q_heads, problem.q_len});
    check_reach(named);
    check_no_overlap(named, 3, 1);
}

void check_scale(float scale) {
    if (scale > 0.0f && std::isfinite(scale)) return;
    refuse("scale is {}; it must be positive and finite", scale);
}

}  // namespace

policy::AttentionProblem check(const AttentionArgs& args, Data data) {
    const Named q{"q", args.q, kQueryDims};
    const Named k{"k", args.k, kKeyDims};
    const Named v{"v", args.v, kKeyDims};
    const Named out{"out", args.out, kQueryDims};

    check_floating(q);
    for (const Named* other : {&k, &v, &out}) {
        check_same_dtype(q, *other);
        check_same_device(q, *other);
    }
    for (const Named* tensor : {&q, &k, &v, &out}) {
        check_sizes(*tensor, 4);
        check_strides(*tensor);
        if (data == Data::present) check_pointer(*tensor);
    }
    const auto& rows = args.q.shape;
    const auto& keys = args.k.shape;
    check_shape(k, {rows[0], keys[1], keys[2], rows[3]});
    check_shape(v, {rows[0], keys[1], keys[2], rows[3]});
    check_shape(out, {rows[0], rows[1], rows[2], rows[3]});
    check_heads(args.q, args.k);

    policy::AttentionProblem problem;
    problem.format = static_cast<int>(args.q.dtype);
    problem.batch = static_cast<int>(rows[0]);
    problem.q_len = static_cast<int>(rows[1]);
    problem.kv_len = static_cast<int>(keys[1]);
    problem.q_heads = static_cast<int>(rows[2]);
    problem.kv_heads = static_cast<int>(keys[2]);
    problem.head_dim = static_cast<int>(rows[3]);
    problem.causal = args.causal;
    problem.mask = args.mask.has_value();
    problem.aligned =
        is_aligned(args.q) && is_aligned(args.k) && is_aligned(args.v) && is_aligned(args.out);
    check_limits(problem);
    check_no_overlap(out, 3, rows[3]);
    for (const Named* input : {&q, &k, &v})
        check_apart(out, *input);

    if (args.mask) {
        const Named mask{"mask", *args.mask,
                         "[batch, kv_len], [batch, q_len, kv_len] or [batch, q_heads, q_len, "
                         "kv_len]"};
        check_same_device(q, mask);
        check_mask(mask, problem);
        if (data == Data::present) check_pointer(mask);
    }
    if (args.lse) {
        const Named lse{"lse", *args.lse, "[batch, q_heads, q_len]"};
        check_same_device(q, lse);
        check_lse(lse, problem);
        if (data == Data::present) check_pointer(lse);
        for (const Named* other : {&q, &k, &v, &out})
            check_apart(lse, *other);
    }
    if (args.scale) check_scale(*args.scale);
    return problem;
}

}  // namespace jitney::checks
