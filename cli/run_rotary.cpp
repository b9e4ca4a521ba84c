#include <CLI/CLI.hpp>
#include <memory>

#include "cli/errors.hpp"
#include "cli/problem.hpp"
#include "cli/run.hpp"
#include "jitney/rotary.hpp"
#include "operations/rotary/check_tensors.hpp"

namespace jitney::cli {

namespace {

struct Options : RunOptions {
    std::string style = "interleaved";
};

Tensor like(Run& run, const std::string& output, std::string_view input) {
    const Tensor& tensor = run.at(input);
    return run.output(output, tensor.dtype,
                      std::span(tensor.shape).first(static_cast<std::size_t>(tensor.ndim)));
}

// What the call would refuse under the name of its own argument, which the file does not have.
void check_as_x(const RotaryArgs& args) {
    constexpr auto present = checks::Data::present;
    const checks::Named x{"x", args.q, "[batch, length, heads, head_dim]"};
    const checks::Named cos{"cos", args.cos, "[positions, rotary_dim / 2]"};
    checks::check_floating(x);
    checks::check_rotated(x, x, {"out", args.q_out, x.dims}, present);
    checks::check_tables(x, cos, {"sin", args.sin, cos.dims}, present);
    if (!args.positions) checks::check_table_length(x, cos);
}

int run_rotary(const Options& options, bool json) {
    Run run(options, {"x", "q", "k", "cos", "sin", "positions"});
    RotaryArgs args;
    if (run.has("x")) {
        if (run.has("q") || run.has("k")) {
            refuse(options.input + " holds both x and q or k, and must hold x, or q and k");
        }
        args.q = run.input("x");
        args.q_out = like(run, "out", "x");
    } else {
        args.q = run.input("q");
        args.q_out = like(run, "q_out", "q");
        if (run.has("k")) {
            args.k = run.input("k");
            args.k_out = like(run, "k_out", "k");
        }
    }
    args.cos = run.input("cos");
    args.sin = run.input("sin");
    args.positions = run.optional_input("positions");
    args.style = style_of(options.style);
    if (run.has("x")) check_as_x(args);
    return run.finish([&args] { rotary_emb(args); }, json);
}

}  // namespace

void add_run_rotary(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "rotary",
                    "Rotary position embedding: tensors x (gives out), or q and, optionally, k "
                    "(give q_out and k_out); cos and sin; optionally, positions",
                    [options](bool json) { return run_rotary(*options, json); });
    options->add_to(command);
    add_style(command, options->style);
}

}  // namespace jitney::cli
