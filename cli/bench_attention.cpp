#include <CLI/CLI.hpp>
#include <memory>

#include "cli/bench.hpp"
#include "cli/memory.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

namespace {

struct Options : BenchOptions {
    AttentionProblem problem;
};

BenchWork work_of(const AttentionArgs& args) {
    const auto size = [](const Tensor& tensor, std::size_t dim) {
        return static_cast<double>(tensor.shape[dim]);
    };
    const double all =
        4 * size(args.q, 0) * size(args.q, 2) * size(args.q, 1) * size(args.k, 1) * size(args.q, 3);
    BenchWork work;
    work.operation = "attention";
    work.flops = args.causal ? all / 2 : all;
    work.bytes = static_cast<double>(bytes_of(args.q) + bytes_of(args.k) + bytes_of(args.v) +
                                     bytes_of(args.out));
    if (args.mask) work.bytes += static_cast<double>(bytes_of(*args.mask));
    work.tensor_cores = args.q.dtype != DType::fp32;
    return work;
}

BenchCall call_of(const AttentionProblem& problem, Device device) {
    const auto args = std::make_shared<AttentionArgs>(problem.arguments(device));
    BenchCall call;
    call.tensors = {&args->q, &args->k, &args->v, &args->out};
    if (args->mask) call.tensors.push_back(&*args->mask);
    call.run = [args] { attention(*args); };
    return call;
}

int bench_attention(const Options& options, bool json) {
    const AttentionProblem& problem = options.problem;
    return run_bench(
        options, work_of(problem.arguments({})),
        [&problem](Device device) { return call_of(problem, device); }, json);
}

}  // namespace

void add_bench_attention(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "attention", "Dense attention",
                    [options](bool json) { return bench_attention(*options, json); });
    options->problem.add_to(command);
    options->add_to(command);
}

}  // namespace jitney::cli
