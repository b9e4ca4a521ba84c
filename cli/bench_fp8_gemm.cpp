#include <CLI/CLI.hpp>
#include <memory>

#include "cli/bench.hpp"
#include "cli/memory.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

namespace {

struct Options : BenchOptions {
    Fp8GemmProblem problem;
};

BenchWork work_of(const Fp8GemmArgs& args) {
    const auto size = [](std::int64_t value) { return static_cast<double>(value); };
    BenchWork work;
    work.operation = "fp8-gemm";
    work.flops = 2 * size(args.out.shape[0]) * size(args.out.shape[1]) *
                 size(args.a.shape[args.trans_a ? 0 : 1]);
    work.bytes = static_cast<double>(bytes_of(args.a) + bytes_of(args.b) + bytes_of(args.out));
    if (args.bias) work.bytes += static_cast<double>(bytes_of(*args.bias));
    work.tensor_cores = true;
    return work;
}

BenchCall call_of(const Fp8GemmProblem& problem, Device device) {
    const auto args = std::make_shared<Fp8GemmArgs>(problem.arguments(device));
    BenchCall call;
    call.tensors = {&args->a, &args->b, &args->out};
    for (std::optional<Tensor>* tensor : {&args->dequant_scale, &args->scale_a, &args->scale_b,
                                          &args->bias, &args->out_multiplier, &args->amax}) {
        if (*tensor) call.tensors.push_back(&**tensor);
    }
    call.run = [args] { fp8_gemm(*args); };
    return call;
}

int bench_fp8_gemm(const Options& options, bool json) {
    const Fp8GemmProblem& problem = options.problem;
    return run_bench(
        options, work_of(problem.arguments({})),
        [&problem](Device device) { return call_of(problem, device); }, json);
}

}  // namespace

void add_bench_fp8_gemm(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "fp8-gemm", "Product of FP8 matrices",
                    [options](bool json) { return bench_fp8_gemm(*options, json); });
    options->problem.add_to(command);
    options->add_to(command);
}

}  // namespace jitney::cli
