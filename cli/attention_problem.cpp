#include "cli/attention_problem.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/errors.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

namespace {

Tensor index(const Shape& shape, Device device) {
    return Tensor::contiguous(nullptr, DType::int32, shape, device);
}

// The part of a request, where `total` is shared evenly.
std::int64_t share_of(std::int64_t total, std::int64_t requests, std::int64_t request) {
    return total / requests + (request < total % requests ? 1 : 0);
}

}  // namespace

void AttentionProblem::add_to(CLI::App& command) {
    add_shape(command, "--q", q,
              "Shape of q: batch,length,heads,head_dim; ragged: total_q,heads,head_dim")
        ->required();
    add_lengths(command, "--q-lens", q_ends,
                "Queries of each request, where --q is ragged and the host knows them: 7,1,512");
    add_shape(command, "--kv", kv, "Shape of k and v (q's): as --q, with the heads of k");
    add_integer(command, "--page-size", page_size, 1, 1 << 30,
                "The keys lie in pages of N, which a block table names");
    command.add_flag("--lengths", lengths,
                     "Each request has its own number of keys in a padded cache (kv_lens)");
    add_shape(command, "--mask", mask,
              "Shape of a bool mask: batch,kv or batch,q,kv or batch,1|heads,q,kv");
    command.add_flag("--alibi", alibi, "With a slope a head");
    command.add_flag("--sinks", sinks, "With a sink a head");
    add_integer(command, "--append", append, 1, 1 << 20,
                "N new keys a request come with the call, and are written to its cache");
    add_format(command, format);
    call.add_to(command);
}

std::int64_t AttentionProblem::batch() const {
    if (!ragged_queries()) return q[0];
    if (!q_ends.empty()) return std::ssize(q_ends) - 1;
    return keys()[0];
}

void AttentionProblem::check() const {
    const auto check_shape = [](const std::string& what, const Shape& shape) {
        if (shape.size() != 3) {
            require_dims(what, shape, 4,
                         "batch,length,heads,head_dim or, ragged, rows of all requests,heads,"
                         "head_dim");
        }
    };
    check_shape("--q", q);
    check_shape("--kv", keys());
    if (!q_ends.empty() && (!ragged_queries() || q_ends.back() != q[0])) {
        refuse(
            fmt::format("--q-lens are {} queries together, and --q is {}; it must be "
                        "{},heads,head_dim",
                        q_ends.back(), text_of_shape(q), q_ends.back()));
    }
    if (ragged_queries() && ragged_keys() && q_ends.empty()) {
        refuse(
            "--q and --kv are both ragged, and nothing tells how many requests there are: give "
            "--q-lens");
    }
    if (page_size != 0 && ragged_keys()) {
        refuse(
            "--page-size divides the keys of each request: give --kv "
            "batch,length,heads,head_dim");
    }
    if (lengths && (page_size != 0 || ragged_keys())) {
        refuse(
            "--lengths is of a padded cache: keys that are ragged or in pages have lengths "
            "anyway");
    }
    if (!ragged_keys() && append > keys()[1]) {
        refuse(
            fmt::format("--append is {} new keys a request, and {} is {}, of {} keys a request, "
                        "which count the new ones: append fewer, or give more keys",
                        append, kv.empty() ? "--q" : "--kv", text_of_shape(keys()), keys()[1]));
    }
}

void AttentionProblem::place_keys(AttentionArgs& args, Device device) const {
    const Shape& shape = keys();
    const DType dtype = args.q.dtype;
    if (page_size == 0) {
        args.k = shaped("--kv", shape, dtype, device);
        if (ragged_keys()) args.kv_indptr = index({batch() + 1}, device);
        if (lengths) args.kv_lens = index({batch()}, device);
    } else {
        const std::int64_t pages = (shape[1] + page_size - 1) / page_size;
        args.k = shaped("--kv", {shape[0] * pages, page_size, shape[2], shape[3]}, dtype, device);
        args.block_table = index({shape[0], pages}, device);
        args.kv_lens = index({batch()}, device);
    }
    args.v = args.k;
}

AttentionArgs AttentionProblem::arguments(Device device) const {
    check();
    const DType dtype = dtype_of(format);
    AttentionArgs args;
    args.q = shaped("--q", q, dtype, device);
    args.out = args.q;
    if (ragged_queries()) {
        args.qo_indptr = index({batch() + 1}, device);
        args.qo_indptr_host = q_ends;
    }
    place_keys(args, device);
    const std::int64_t heads = q[q.size() - 2];
    if (!mask.empty()) args.mask = shaped("--mask", mask, DType::boolean, device);
    if (alibi) args.alibi_slopes = shaped("--q", {heads}, DType::fp32, device);
    if (sinks) args.sinks = shaped("--q", {heads}, DType::fp32, device);
    if (append != 0) {
        args.new_k =
            shaped("--kv", {batch(), append, keys()[keys().size() - 2], q.back()}, dtype, device);
        args.new_v = args.new_k;
    }
    call.apply(args);
    args.logits = logits.function();
    args.logits_values = empty_values(args.logits);
    return args;
}

std::int64_t AttentionProblem::q_len(std::int64_t request) const {
    if (!ragged_queries()) return q[1];
    if (q_ends.empty()) return share_of(q[0], batch(), request);
    const auto at = static_cast<std::size_t>(request);
    return q_ends[at + 1] - q_ends[at];
}

std::int64_t AttentionProblem::kv_len(std::int64_t request) const {
    if (kv.empty()) return q_len(request);
    return ragged_keys() ? share_of(kv[0], batch(), request) : kv[1];
}

}  // namespace jitney::cli
