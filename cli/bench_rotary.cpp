#include <CLI/CLI.hpp>
#include <memory>

#include "cli/bench.hpp"
#include "cli/memory.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

namespace {

struct Options : BenchOptions {
    RotaryProblem problem;
};

BenchWork work_of(const RotaryArgs& args) {
    BenchWork work;
    work.operation = "rotary";
    work.bytes = static_cast<double>(2 * bytes_of(args.q) + 2 * bytes_of(args.cos));
    if (args.k) work.bytes += static_cast<double>(2 * bytes_of(*args.k));
    return work;
}

BenchCall call_of(const RotaryProblem& problem, Device device) {
    const auto args = std::make_shared<RotaryArgs>(problem.arguments(device));
    BenchCall call;
    call.tensors = {&args->q, &args->q_out, &args->cos, &args->sin};
    if (args->k) {
        call.tensors.push_back(&*args->k);
        call.tensors.push_back(&*args->k_out);
    }
    call.run = [args] { rotary_emb(*args); };
    return call;
}

int bench_rotary(const Options& options, bool json) {
    const RotaryProblem& problem = options.problem;
    return run_bench(
        options, work_of(problem.arguments({})),
        [&problem](Device device) { return call_of(problem, device); }, json);
}

}  // namespace

void add_bench_rotary(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command = add_command(group, request, "rotary", "Rotary position embedding",
                                    [options](bool json) { return bench_rotary(*options, json); });
    options->problem.add_to(command);
    options->add_to(command);
}

}  // namespace jitney::cli
