#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "cli/run.hpp"
#include "jitney/attention.hpp"

namespace jitney::cli {

namespace {

struct Options : RunOptions {
    bool causal = false;
    bool lse = false;
    std::optional<double> scale;
};

int run_attention(const Options& options, bool json) {
    Run run(options, {"q", "k", "v", "mask"});
    const Tensor& q = run.at("q");
    if (q.ndim != 4) {
        refuse(
            fmt::format("q of {} has {} dimensions, and must have four: batch, length, heads, "
                        "head_dim",
                        options.input, q.ndim));
    }
    AttentionArgs args;
    args.q = run.input("q");
    args.k = run.input("k");
    args.v = run.input("v");
    args.mask = run.optional_input("mask");
    args.causal = options.causal;
    if (options.scale) args.scale = static_cast<float>(*options.scale);
    args.out = run.output("out", q.dtype, std::span(q.shape).first(4));
    if (options.lse) {
        const std::array rows = {q.shape[0], q.shape[2], q.shape[1]};
        args.lse = run.output("lse", DType::fp32, rows);
    }
    return run.finish([&args] { attention(args); }, json);
}

}  // namespace

void add_run_attention(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "attention",
                    "softmax(scale * q k^T) v: tensors q, k, v and, optionally, mask, in the "
                    "layout batch,length,heads,head_dim; gives out and, with --lse, lse",
                    [options](bool json) { return run_attention(*options, json); });
    options->add_to(command);
    command.add_flag("--causal", options->causal, "Query i sees the keys j <= i + kv_len - q_len");
    command.add_flag("--lse", options->lse, "Give the log-sum-exp of each row, too");
    add_real(command, "--scale", options->scale, "Factor of the scores (1/sqrt(head_dim))");
}

}  // namespace jitney::cli
