#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cli/errors.hpp"
#include "cli/problem.hpp"
#include "cli/run.hpp"
#include "jitney/fp8_gemm.hpp"

namespace jitney::cli {

namespace {

struct Options : RunOptions {
    std::string out = "bf16";
    bool trans_a = false;
    bool trans_b = false;
    bool fast_accum = false;
};

int run_fp8_gemm(const Options& options, bool json) {
    Run run(options, {"a", "b", "dequant_scale", "bias", "out_multiplier"});
    Fp8GemmArgs args;
    args.trans_a = options.trans_a;
    args.trans_b = options.trans_b;
    args.fast_accum = options.fast_accum;
    args.a = run.input("a");
    args.b = run.input("b");
    if (args.a.ndim != 2 || args.b.ndim != 2) {
        refuse("a and b of " + options.input + " must be matrices, of two dimensions each");
    }
    args.dequant_scale = run.input("dequant_scale");
    args.bias = run.optional_input("bias");
    args.out_multiplier = run.optional_input("out_multiplier");
    const std::array shape = {args.a.shape[options.trans_a ? 1 : 0],
                              args.b.shape[options.trans_b ? 0 : 1]};
    args.out = run.output("out", product_dtype_of(options.out), shape);
    if (args.out_multiplier) {
        const std::array<std::int64_t, 1> one = {1};
        args.amax = run.output("amax", DType::fp32, one);
    }
    return run.finish([&args] { fp8_gemm(args); }, json);
}

}  // namespace

void add_run_fp8_gemm(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "fp8-gemm",
                    "Product of FP8 matrices: tensors a, b, dequant_scale; optionally, bias; gives "
                    "out. With an output in FP8, out_multiplier too; gives amax as well",
                    [options](bool json) { return run_fp8_gemm(*options, json); });
    options->add_to(command);
    add_product_options(command, options->out, options->trans_a, options->trans_b,
                        options->fast_accum);
}

}  // namespace jitney::cli
