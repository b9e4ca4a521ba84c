#include "cli/append_kv_problem.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "cli/errors.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

namespace {

constexpr int kMost = std::numeric_limits<int>::max();

void add_rotary(AppendKvArgs& args, const AppendKvProblem& problem, Device device) {
    const std::int64_t head_dim = problem.rows.back();
    const std::int64_t rotated = rotated_of(problem.rotary_dim, head_dim);
    args.cos = args.sin = shaped("--rotary-dim", {1, rotated / 2}, DType::fp32, device);
    args.style = style_of(problem.style);
    if (problem.q_heads == 0) return;
    Shape q = problem.rows;
    q[q.size() - 2] = problem.q_heads;
    args.q = args.q_out = shaped("--new", q, dtype_of(problem.format), device);
}

}  // namespace

void AppendKvProblem::add_to(CLI::App& command) {
    add_shape(command, "--new", rows,
              "Shape of the new keys: batch,new_len,kv_heads,head_dim, or ragged "
              "total_new,kv_heads,head_dim")
        ->required();
    add_integer(command, "--requests", requests, 1, kMost,
                "How many requests ragged keys are of (as many as keys)");
    add_integer(command, "--page-size", page_size, 1, kMost,
                "The cache lies in pages of so many keys (it is padded)");
    add_format(command, format);
    add_word(command, "--style", style, {"none", "interleaved", "half_split"},
             "The keys are rotated on the way, and which elements are turned together (none)");
    add_integer(command, "--rotary-dim", rotary_dim, 2, 1 << 20,
                "Leading elements of each head that are rotated (all)");
    add_integer(command, "--q-heads", q_heads, 1, kMost,
                "The queries of the same tokens, of so many heads, are rotated, too");
}

AppendKvArgs AppendKvProblem::arguments(Device device) const {
    const bool ragged = rows.size() == 3;
    if (!ragged) {
        require_dims("--new", rows, 4,
                     "batch,new_len,kv_heads,head_dim or total_new,kv_heads,head_dim");
        if (requests != 0) refuse("--requests is of ragged keys: the batch of --new says how many");
    }
    const bool rotates = style != "none";
    if (!rotates && rotary_dim != 0) refuse("--rotary-dim is of a --style, which is missing");
    if (!rotates && q_heads != 0) refuse("--q-heads is of a --style, which is missing");
    const DType dtype = dtype_of(format);
    const std::int64_t batch = !ragged ? rows[0] : requests != 0 ? requests : rows[0];
    const Shape heads(rows.end() - 2, rows.end());
    const std::int64_t page = page_size != 0 ? page_size : std::max<std::int64_t>(rows[0], 1);

    AppendKvArgs args;
    args.new_k = args.new_v = shaped("--new", rows, dtype, device);
    if (ragged) args.new_indptr = shaped("--requests", {batch + 1}, DType::int32, device);
    args.kv_lens = shaped("--requests", {batch}, DType::int32, device);
    if (page_size != 0) {
        args.k = shaped("--page-size", {1, page, heads[0], heads[1]}, dtype, device);
        args.block_table = shaped("--requests", {batch, 1}, DType::int32, device);
    } else {
        const std::int64_t places = ragged ? rows[0] : rows[1];
        args.k = shaped("--new", {batch, places, heads[0], heads[1]}, dtype, device);
    }
    args.v = args.k;
    if (rotates) add_rotary(args, *this, device);
    return args;
}

}  // namespace jitney::cli
