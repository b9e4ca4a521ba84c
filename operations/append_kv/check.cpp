#include <limits>

#include "operations/append_kv/fields.hpp"
#include "operations/append_kv/form.hpp"
#include "operations/attention/check_requests.hpp"
#include "operations/call_memory.hpp"
#include "operations/check.hpp"
#include "operations/refuse.hpp"
#include "operations/rotary/check_tensors.hpp"

namespace jitney::checks {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

const char* row_dims(const AppendKvArgs& args) {
    return args.new_indptr ? "[total_new, heads, head_dim]" : "[batch, new_len, heads, head_dim]";
}

// new_k and new_v, and the cache that they go to.
std::int64_t check_rows(const AppendKvArgs& args, const AttentionArgs& cached, KvForm form,
                        Data data) {
    const bool packed = args.new_indptr.has_value();
    const Named new_k{"new_k", args.new_k, row_dims(args)};
    const Named new_v{"new_v", args.new_v, row_dims(args)};
    const Named k{"k", args.k, key_dims(cached, form)};
    const Named v{"v", args.v, k.dims};
    check_floating(new_k);
    for (const Named* other : {&new_v, &k, &v}) {
        check_same_dtype(new_k, *other);
        check_same_device(new_k, *other);
    }
    check_forms(cached, form);
    const int ndim = packed ? 3 : 4;
    const int k_ndim = key_ndim(cached, form);
    for (const Named* tensor : {&new_k, &new_v, &k, &v}) {
        check_sizes(*tensor, tensor == &k || tensor == &v ? k_ndim : ndim);
        check_strides(*tensor);
        check_pointer(*tensor, data);
    }
    const auto& rows = args.new_k.shape;
    if (packed) {
        check_shape(new_v, {rows[0], rows[1], rows[2]});
    } else {
        check_shape(new_v, {rows[0], rows[1], rows[2], rows[3]});
    }
    const std::int64_t batch =
        packed ? batch_of({"new_indptr", *args.new_indptr, "[batch + 1]"}) : rows[0];
    check_keys(cached, form, k, v, batch);
    if (from_end(args.new_k, 2) != from_end(args.k, 2)) {
        refuse("new_k has {} heads and k has {}; they must be equal", from_end(args.new_k, 2),
               from_end(args.k, 2));
    }
    const std::int64_t head_dim = from_end(args.new_k, 1);
    if (head_dim == 0) {
        refuse("head_dim, the last size of new_k, is 0; it must be at least 1");
    }
    for (const Named* written : {&k, &v})
        check_no_overlap(*written);
    if (packed) {
        check_index(new_k, {"new_indptr", *args.new_indptr, "[batch + 1]"}, 1, batch + 1, data);
    }
    check_indices(new_k, cached, form, batch, data);
    return batch;
}

void check_together(const std::optional<Tensor>& a, const std::optional<Tensor>& b,
                    const char* a_name, const char* b_name) {
    if (a.has_value() == b.has_value()) return;
    refuse("{} and {} come together: give {} too, or leave both out", a_name, b_name,
           a ? b_name : a_name);
}

void check_rotary(const AppendKvArgs& args, policy::AppendKvProblem& problem, Data data) {
    check_style(args.style);
    check_together(args.cos, args.sin, "cos", "sin");
    check_together(args.q, args.q_out, "q", "q_out");
    if (!args.cos) {
        if (args.q || args.positions) {
            refuse("{} is for a rotation, and there are no tables for one: give cos and sin",
                   args.q ? "q" : "positions");
        }
        return;
    }
    problem.rotary = args.style == RotaryStyle::half_split ? policy::AppendRotary::half_split
                                                           : policy::AppendRotary::interleaved;
    // As [batch, length, heads, head_dim]; ragged rows are those of a batch of one.
    RotaryArgs rotary = as_rotary(args);
    const Named rows{args.q ? "q" : "new_k", rotary.q, "[batch, length, heads, head_dim]"};
    if (args.q) {
        const Named q{"q", *args.q, row_dims(args)};
        const Named new_k{"new_k", args.new_k, ""};
        check_same_dtype(new_k, q);
        check_same_device(new_k, q);
        check_sizes(q, args.new_k.ndim);
        check_sizes({"q_out", *args.q_out, row_dims(args)}, args.new_k.ndim);
        const auto& shape = args.new_k.shape;
        const std::int64_t q_heads = from_end(*args.q, 2);
        if (args.new_k.ndim == 3) {
            check_shape(q, {shape[0], q_heads, shape[2]});
        } else {
            check_shape(q, {shape[0], shape[1], q_heads, shape[3]});
        }
        const Named q_out{"q_out", rotary.q_out, rows.dims};
        check_rotated(rows, rows, q_out, data);
        problem.q_heads = static_cast<int>(q_heads);
        problem.q_in_place =
            args.q->data == args.q_out->data && args.q->strides == args.q_out->strides;
        problem.aligned = problem.aligned && is_aligned(*args.q) && is_aligned(*args.q_out);
    }
    check_tables(rows, {"cos", *args.cos, "[positions, rotary_dim / 2]"},
                 {"sin", *args.sin, "[positions, rotary_dim / 2]"}, data);
    problem.aligned = problem.aligned && is_aligned(*args.cos) && is_aligned(*args.sin);
    problem.rotary_dim = static_cast<int>(2 * args.cos->shape[1]);
    if (args.positions) {
        check_positions(rows,
                        {"positions", *args.positions,
                         args.new_indptr ? "[total_new]" : "[new_len] or [batch, new_len]"},
                        data);
    }
}

}  // namespace

policy::AppendKvProblem check(const AppendKvArgs& args, Data data) {
    const AttentionArgs cached = as_attention(args);
    const KvForm form = kv_form(cached);
    const std::int64_t batch = check_rows(args, cached, form, data);
    policy::AppendKvProblem problem;
    problem.format = static_cast<int>(args.new_k.dtype);
    problem.batch = static_cast<int>(batch);
    problem.kv_heads = static_cast<int>(from_end(args.new_k, 2));
    problem.head_dim = static_cast<int>(from_end(args.new_k, 1));
    problem.packed = args.new_indptr.has_value();
    problem.paged = is_paged(form);
    problem.tokens = problem.packed ? args.new_k.shape[0] : batch * args.new_k.shape[1];
    problem.aligned = is_aligned(args.new_k) && is_aligned(args.new_v) && is_aligned(args.k) &&
                      is_aligned(args.v);
    check_rotary(args, problem, data);
    if (data != Data::absent) {
        if (args.q) check_in_place({"q_out", *args.q_out, ""}, {"q", *args.q, ""});
        check_memory(args);
    }
    const std::int64_t elements =
        (2 * std::int64_t{problem.kv_heads} + problem.q_heads) * problem.head_dim;
    if (elements > kMaxInt) {
        refuse(
            "K, V and q have {} elements a token, more than {}: split the heads into several "
            "calls",
            elements, kMaxInt);
    }
    return problem;
}

}  // namespace jitney::checks
