#include <cmath>
#include <limits>

#include "operations/attention/check_logits.hpp"
#include "operations/attention/check_requests.hpp"
#include "operations/attention/fields.hpp"
#include "operations/attention/tensor_maps.hpp"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/own_workspace.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

// Kernels count rows and keys in 31 bits, and go beyond the last one by at most a tile.
constexpr std::int64_t kMaxRows = std::numeric_limits<std::int32_t>::max() - 4096;

const char* query_dims(const AttentionArgs& args) {
    return args.qo_indptr ? "[total_q, q_heads, head_dim]" : "[batch, q_len, q_heads, head_dim]";
}

void check_heads(const Tensor& q, const Tensor& k) {
    const std::int64_t q_heads = from_end(q, 2);
    const std::int64_t kv_heads = from_end(k, 2);
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
            "{} {} times {} query heads a KV head are {} rows, more than {}: split the "
            "queries into several calls",
            problem.packed ? "total_q" : "q_len", problem.q_len, problem.group(), rows, kMaxRows);
    }
    const std::int64_t heads = std::int64_t{problem.batch} * problem.kv_heads;
    if (heads > std::numeric_limits<std::int32_t>::max()) {
        refuse(
            "batch {} times {} KV heads are {}, more than {}: split the batch into several "
            "calls",
            problem.batch, problem.kv_heads, heads, std::numeric_limits<std::int32_t>::max());
    }
}

// A mask of requests of several lengths is as large as the largest, which only the device knows.
void check_mask(const Named& named, const AttentionArgs& args, KvForm form,
                const policy::AttentionProblem& problem) {
    const Tensor& mask = named.tensor;
    check_dtype(named, DType::boolean);
    if (mask.ndim < 2 || mask.ndim > 4) {
        refuse("mask has {} dimensions; it must be {}", mask.ndim, named.dims);
    }
    check_sizes(named, mask.ndim);
    const int last = mask.ndim - 1;
    check_broadcast(named, 0, problem.batch);
    if (mask.ndim == 4) check_broadcast(named, 1, problem.q_heads);
    if (mask.ndim >= 3 && !problem.packed) check_broadcast(named, last - 1, problem.q_len);
    const std::int64_t keys = mask.shape[static_cast<std::size_t>(last)];
    if (form == KvForm::dense && keys != args.k.shape[1]) {
        refuse("the last size of mask is {}; it must be kv_len, which is {}: mask is {}", keys,
               args.k.shape[1], named.dims);
    }
    // No column stands for other keys. More is not known here: kernels read the lengths.
    if (form != KvForm::dense && keys == 1 && args.q.device.type != DeviceType::cpu) {
        const std::int64_t most = most_keys(args, form);
        if (most > 1) {
            refuse(
                "the last size of mask is 1, and one column does not stand for all keys; it must "
                "be at least the kv_len of the longest request, which may be {}: mask is {}; where "
                "no request has more than one key, say so by max_kv_len",
                most, named.dims);
        }
    }
    check_strides(named);
}

policy::MaskSizes mask_sizes(const Tensor& mask) {
    const auto size = [&mask](int dim) {
        const auto i = static_cast<std::size_t>(dim);
        return mask.strides[i] == 0 ? 1 : static_cast<int>(mask.shape[i]);
    };
    const int last = mask.ndim - 1;
    return {size(0), mask.ndim == 4 ? size(1) : 1, mask.ndim >= 3 ? size(last - 1) : 1,
            static_cast<int>(mask.shape[static_cast<std::size_t>(last)])};
}

void check_lse(const Named& named, const policy::AttentionProblem& problem) {
    check_dtype(named, DType::fp32);
    check_sizes(named, problem.packed ? 2 : 3);
    if (problem.packed) {
        check_shape(named, {problem.q_len, problem.q_heads});
    } else {
        check_shape(named, {problem.batch, problem.q_heads, problem.q_len});
    }
    check_reach(named);
    check_no_overlap(named);
}

void check_positive(const char* name, float value) {
    if (value > 0.0f && std::isfinite(value)) return;
    refuse("{} is {}; it must be positive and finite", name, value);
}

void check_window(const char* name, int keys) {
    if (keys >= -1) return;
    refuse("{} is {}; it must be a number of keys, or -1 for all", name, keys);
}

void check_a_head(const AttentionArgs& args, const Named& named,
                  const policy::AttentionProblem& problem, Data data) {
    check_dtype(named, DType::fp32);
    check_same_device({"q", args.q, ""}, named);
    check_sizes(named, 1);
    check_shape(named, {problem.q_heads});
    check_strides(named);
    check_pointer(named, data);
}

void check_options(const AttentionArgs& args, policy::AttentionProblem& problem, Data data) {
    if (args.scale) check_positive("scale", *args.scale);
    if (args.softcap) check_positive("softcap", *args.softcap);
    check_window("window_left", args.window_left);
    check_window("window_right", args.window_right);
    if (args.alibi_slopes) {
        check_a_head(args, {"alibi_slopes", *args.alibi_slopes, "[q_heads]"}, problem, data);
    }
    if (args.sinks) check_a_head(args, {"sinks", *args.sinks, "[q_heads]"}, problem, data);
    // A causal query sees nothing to its right anyway.
    problem.window = args.window_left >= 0 || (args.window_right >= 0 && !args.causal);
    problem.softcap = args.softcap.has_value();
    problem.alibi = args.alibi_slopes.has_value();
    problem.sinks = args.sinks.has_value();
    problem.logits = check_logits(args.logits, args.logits_values);
}

void check_new_rows(const AttentionArgs& args, const Named& q, policy::AttentionProblem& problem,
                    Data data) {
    if (args.new_k.has_value() != args.new_v.has_value()) {
        refuse("new_k and new_v come together: give {} too, or leave both out",
               args.new_k ? "new_v" : "new_k");
    }
    problem.append = args.new_k.has_value();
    if (!problem.append) return;
    if (problem.packed) {
        refuse(
            "new_k is appended for queries of one length, not for ragged ones: write the new keys "
            "and values to the cache before the call");
    }
    if (problem.q_len == 0 && problem.batch != 0) {
        refuse("new_k is appended where there are queries, and q_len is 0");
    }
    if (problem.q_heads == 0 && problem.kv_heads != 0) {
        refuse(
            "new_k is appended where there are queries, and q has no heads: write the new keys and "
            "values by append_kv");
    }
    if (problem.q_len > policy::kMaxDecodeQueries) {
        refuse(
            "new_k is appended for up to {} queries a request, and q_len is {}: write the new keys "
            "and values by append_kv before the call",
            policy::kMaxDecodeQueries, problem.q_len);
    }
    const std::int64_t length = args.new_k->ndim == 4 ? args.new_k->shape[1] : 0;
    if (kv_form(args) == KvForm::dense && length > args.k.shape[1]) {
        refuse(
            "new_k has {} keys a request, and k has room for {}, which counts the new ones: make "
            "k longer, or give fewer new keys",
            length, args.k.shape[1]);
    }
    for (const Named& named :
         {Named{"new_k", *args.new_k, "[batch, new_len, kv_heads, head_dim]"},
          Named{"new_v", *args.new_v, "[batch, new_len, kv_heads, head_dim]"}}) {
        check_same_dtype(q, named);
        check_same_device(q, named);
        check_sizes(named, 4);
        check_shape(named, {problem.batch, length, problem.kv_heads, problem.head_dim});
        check_strides(named);
        check_pointer(named, data);
        problem.aligned = problem.aligned && is_aligned(named.tensor);
    }
    for (const Named& named : {Named{"k", args.k, ""}, Named{"v", args.v, ""}})
        check_no_overlap(named);
    // Blocks count the pieces of the new rows in 31 bits.
    if (length * 2 * problem.head_dim > kMaxRows) {
        refuse("new_k has {} keys of {} elements a request, too many for one launch", length,
               problem.head_dim);
    }
}

}  // namespace

policy::AttentionProblem check(const AttentionArgs& args, Data data) {
    const KvForm form = kv_form(args);
    const bool packed = args.qo_indptr.has_value();
    const Named q{"q", args.q, query_dims(args)};
    const Named k{"k", args.k, key_dims(args, form)};
    const Named v{"v", args.v, k.dims};
    const Named out{"out", args.out, q.dims};

    check_floating(q);
    for (const Named* other : {&k, &v, &out}) {
        check_same_dtype(q, *other);
        check_same_device(q, *other);
    }
    check_forms(args, form);
    const int q_ndim = packed ? 3 : 4;
    const int k_ndim = key_ndim(args, form);
    for (const Named* tensor : {&q, &k, &v, &out}) {
        check_sizes(*tensor, tensor == &q || tensor == &out ? q_ndim : k_ndim);
        check_strides(*tensor);
        check_pointer(*tensor, data);
    }
    const std::int64_t batch =
        packed ? batch_of({"qo_indptr", *args.qo_indptr, "[batch + 1]"}) : args.q.shape[0];
    const auto& rows = args.q.shape;
    check_keys(args, form, k, v, batch);
    if (packed) {
        check_shape(out, {rows[0], rows[1], rows[2]});
    } else {
        check_shape(out, {rows[0], rows[1], rows[2], rows[3]});
    }
    check_heads(args.q, args.k);
    if (packed) check_index(q, {"qo_indptr", *args.qo_indptr, "[batch + 1]"}, 1, batch + 1, data);
    check_host_indptr(args, batch, data);
    check_indices(q, args, form, batch, data);

    policy::AttentionProblem problem;
    problem.format = static_cast<int>(args.q.dtype);
    problem.batch = static_cast<int>(batch);
    problem.q_len = static_cast<int>(packed ? rows[0] : rows[1]);
    problem.kv_len = static_cast<int>(kv_len_estimate(args, form, batch));
    problem.q_heads = static_cast<int>(from_end(args.q, 2));
    problem.kv_heads = static_cast<int>(from_end(args.k, 2));
    problem.head_dim = static_cast<int>(from_end(args.q, 1));
    problem.causal = args.causal;
    problem.mask = args.mask.has_value();
    problem.packed = packed;
    problem.batch_invariant = args.batch_invariant;
    problem.paged = is_paged(form);
    if (problem.paged) problem.page_size = page_size_of(args);
    problem.qo_indptr = {args.qo_indptr_host};
    problem.aligned =
        is_aligned(args.q) && is_aligned(args.k) && is_aligned(args.v) && is_aligned(args.out);
    problem.mapped = can_be_mapped(args.q) && can_be_mapped(args.k) && can_be_mapped(args.v) &&
                     can_be_mapped(args.out);
    check_limits(problem);
    check_no_overlap(out);

    if (args.mask) {
        const Named mask{"mask", *args.mask,
                         "[batch, kv_len], [batch, q_len, kv_len] or [batch, q_heads, q_len, "
                         "kv_len]"};
        check_same_device(q, mask);
        check_mask(mask, args, form, problem);
        problem.mask_sizes = mask_sizes(*args.mask);
        check_pointer(mask, data);
    }
    if (args.lse) {
        const Named lse{"lse", *args.lse,
                        packed ? "[total_q, q_heads]" : "[batch, q_heads, q_len]"};
        check_same_device(q, lse);
        check_lse(lse, problem);
        check_pointer(lse, data);
    }
    check_given(args.workspace);
    check_options(args, problem, data);
    check_new_rows(args, q, problem, data);
    if (data != Data::absent) check_memory(args);
    return problem;
}

}  // namespace jitney::checks
