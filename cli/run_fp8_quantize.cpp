#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <span>

#include "cli/errors.hpp"
#include "cli/problem.hpp"
#include "cli/run.hpp"
#include "jitney/fp8_quantize.hpp"

namespace jitney::cli {

namespace {

struct Options : RunOptions {
    std::string out = "e4m3";
    bool transposed = false;
    bool dynamic = false;
};

int run_fp8_quantize(const Options& options, bool json) {
    Run run(options, {"x", "multiplier"});
    if (options.dynamic && run.has("multiplier")) {
        refuse(options.input +
               " holds a multiplier, and --dynamic makes one: leave one of them out");
    }
    const Tensor& x = run.at("x");
    const auto shape = std::span(x.shape).first(static_cast<std::size_t>(x.ndim));
    const DType format = fp8_dtype_of(options.out);
    const std::array<std::int64_t, 1> number{1};
    Fp8QuantizeArgs args;
    args.x = run.input("x");
    args.out = run.output("out", format, shape);
    if (options.transposed) {
        const std::int64_t cols = shape.back();
        const std::array<std::int64_t, 2> turned{cols, cols != 0 ? x.elements() / cols : 0};
        args.out_transposed = run.output("out_transposed", format, turned);
    }
    args.multiplier = run.optional_input("multiplier");
    if (options.dynamic) {
        args.multiplier = run.output("multiplier", DType::fp32, number);
        args.scale = run.output("scale", DType::fp32, number);
    }
    args.amax = run.output("amax", DType::fp32, number);
    args.dynamic = options.dynamic;
    return run.finish([&args] { fp8_quantize(args); }, json);
}

}  // namespace

void add_run_fp8_quantize(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "fp8-quantize",
                    "Codes of x * multiplier in an 8-bit floating format: tensors x and, "
                    "optionally, multiplier; gives out and amax",
                    [options](bool json) { return run_fp8_quantize(*options, json); });
    options->add_to(command);
    add_fp8_format(command, "--out-format", options->out);
    command.add_flag("--transposed", options->transposed, "Give out_transposed, [cols, rows], too");
    command.add_flag("--dynamic", options->dynamic,
                     "Make the multiplier of x's own amax, and give it and its inverse, scale");
}

}  // namespace jitney::cli
