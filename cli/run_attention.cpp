#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include "cli/arguments.hpp"
#include "cli/attention_options.hpp"
#include "cli/errors.hpp"
#include "cli/logits_option.hpp"
#include "cli/run.hpp"
#include "jitney/attention.hpp"
#include "operations/attention/reference.hpp"
#include "operations/check.hpp"
#include "operations/reference_call.hpp"

namespace jitney::cli {

namespace {

struct Options : RunOptions {
    AttentionOptions call;
    LogitsOption logits;
    bool lse = false;
};

struct Field {
    std::string_view name;
    std::optional<Tensor> AttentionArgs::*tensor;
    bool index = false;
};

constexpr std::array kFields = {
    Field{"mask", &AttentionArgs::mask},
    Field{"qo_indptr", &AttentionArgs::qo_indptr, true},
    Field{"kv_lens", &AttentionArgs::kv_lens, true},
    Field{"kv_indptr", &AttentionArgs::kv_indptr, true},
    Field{"req_to_token", &AttentionArgs::req_to_token, true},
    Field{"req_pool_indices", &AttentionArgs::req_pool_indices, true},
    Field{"block_table", &AttentionArgs::block_table, true},
    Field{"kv_page_indptr", &AttentionArgs::kv_page_indptr, true},
    Field{"kv_page_indices", &AttentionArgs::kv_page_indices, true},
    Field{"last_page_len", &AttentionArgs::last_page_len, true},
    Field{"alibi_slopes", &AttentionArgs::alibi_slopes},
    Field{"sinks", &AttentionArgs::sinks},
    Field{"new_k", &AttentionArgs::new_k},
    Field{"new_v", &AttentionArgs::new_v},
};

// What the file may hold: the tensors of the call, and those of the logits function's parameters.
std::vector<std::string_view> names(const std::vector<std::string>& parameters) {
    std::vector<std::string_view> all = {"q", "k", "v", "k_pool", "v_pool"};
    for (const Field& field : kFields)
        all.push_back(field.name);
    for (const std::string& name : parameters) {
        if (std::find(all.begin(), all.end(), name) != all.end()) {
            refuse(fmt::format(
                "the logits function has the parameter '{}', and a tensor of the call is called "
                "so: rename the parameter",
                name));
        }
    }
    all.insert(all.end(), parameters.begin(), parameters.end());
    return all;
}

// What the file calls the keys and the values.
struct Keys {
    std::string k = "k";
    std::string v = "v";
};

Keys keys_of(const Run& run, const std::string& file) {
    const bool pools = run.has("k_pool") || run.has("v_pool");
    if (!pools) return {};
    if (run.has("k") || run.has("v")) {
        refuse(file + " holds both k or v and k_pool or v_pool, and must hold one of the pairs");
    }
    if (!run.has("req_to_token") && !run.has("block_table") && !run.has("kv_page_indices")) {
        refuse(file +
               " holds k_pool and v_pool, and nothing that names their pages: give req_to_token, "
               "block_table or kv_page_indices, or call keys that lie in order k and v");
    }
    return {"k_pool", "v_pool"};
}

// The call on the tensors that `input` gives for the names, and `updated` for what it changes.
template <class Input, class Updated>
AttentionArgs arguments(const Run& run, const Options& options, const Keys& keys, Input input,
                        Updated updated) {
    AttentionArgs args;
    args.q = input("q");
    args.k = run.has("new_k") ? updated(keys.k) : input(keys.k);
    args.v = run.has("new_k") ? updated(keys.v) : input(keys.v);
    for (const Field& field : kFields) {
        if (run.has(field.name)) args.*field.tensor = input(field.name);
    }
    options.call.apply(args);
    return args;
}

Shape shape_of(const Tensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.begin() + tensor.ndim};
}

Shape shape_of_lse(const Tensor& q) {
    if (q.ndim == 3) return {q.shape[0], q.shape[1]};
    return {q.shape[0], q.shape[2], q.shape[1]};
}

// All that can be wrong with the file, wherever it is going to be computed: of shapes, and, which
// no GPU checks, of the values of index tensors.
void check_in_file(AttentionArgs args, const Options& options) {
    const int dims = args.qo_indptr ? 3 : 4;
    if (args.q.ndim != dims) {
        refuse(fmt::format("q of {} has {} dimensions, and must have {}", options.input,
                           args.q.ndim,
                           dims == 4 ? "four, batch, length, heads, head_dim, where there is no "
                                       "qo_indptr"
                                     : "three beside qo_indptr: rows of all requests, heads, "
                                       "head_dim"));
    }
    args.out = Tensor::contiguous(nullptr, args.q.dtype, shape_of(args.q), args.q.device);
    if (options.lse) {
        args.lse = Tensor::contiguous(nullptr, DType::fp32, shape_of_lse(args.q), args.q.device);
    }
    checks::check(args, checks::Data::absent);
    args.logits = {};  // which says nothing of the values
    reference::check(reference_call(args));
}

int run_attention(const Options& options, bool json) {
    const LogitsFunction logits = options.logits.function();
    const std::vector<std::string> parameters = parameter_names(logits);
    Run run(options, names(parameters));
    const Keys keys = keys_of(run, options.input);
    for (const Field& field : kFields) {
        if (field.index) run.narrow(field.name);
    }
    const auto in_file = [&run](std::string_view name) { return run.at(name); };
    AttentionArgs checked = arguments(run, options, keys, in_file, in_file);
    checked.logits = logits;
    checked.logits_values = empty_values(logits);
    check_in_file(checked, options);

    AttentionArgs args = arguments(
        run, options, keys, [&run](std::string_view name) { return run.input(name); },
        [&run](std::string_view name) { return run.updated(name); });
    args.logits = logits;
    args.logits_values = values_in(run, logits);
    args.out = run.output("out", args.q.dtype, shape_of(args.q));
    if (options.lse) args.lse = run.output("lse", DType::fp32, shape_of_lse(args.q));
    if (args.qo_indptr) {
        const Tensor& ends = run.at("qo_indptr");
        args.qo_indptr_host = {static_cast<const int*>(ends.data),
                               static_cast<std::size_t>(ends.elements())};
    }
    return run.finish([&args] { attention(args); }, json);
}

}  // namespace

void add_run_attention(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        group, request, "attention",
        "softmax(scale * q k^T) v: tensors q, k, v, or q, k_pool, v_pool, and any others of the "
        "call by their names: mask, qo_indptr, kv_indptr, kv_lens, req_to_token and "
        "req_pool_indices, block_table, kv_page_indptr and kv_page_indices and last_page_len, "
        "alibi_slopes, sinks, new_k and new_v; gives out, with --lse lse, and, where there are new "
        "keys, the pools",
        [options](bool json) { return run_attention(*options, json); });
    options->add_to(command);
    options->call.add_to(command);
    options->logits.add_to(
        command,
        "Edit the scores by the logits function in this file, whose parameters are tensors of IN "
        "called like them");
    command.add_flag("--lse", options->lse, "Give the log-sum-exp of each row, too");
}

}  // namespace jitney::cli
