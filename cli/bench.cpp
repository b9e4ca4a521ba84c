#include "cli/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/arguments.hpp"
#include "cli/bench_data.hpp"
#include "cli/bench_gpu.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_problem.hpp"
#include "cli/errors.hpp"
#include "cli/output.hpp"

namespace jitney::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct Result {
    Samples samples;
    std::string ran;     // a specialization, or "reference"
    std::string device;  // its name, or that of the CPU
    bool gpu = false;
    double copy_gbs = 0;           // 0: not measured
    std::optional<double> tflops;  // the card's dense rate
};

// Which of the card's limits is nearer, and how near the result comes to it.
struct Share {
    std::string of;  // "copy_bandwidth" or "dense_rate"; empty: not known
    double value = 0;
};

Share share_of(const BenchWork& work, const Result& result) {
    // Below this many operations a byte, no card is limited by its arithmetic.
    constexpr double kMemoryBound = 50;
    const double ms = result.samples.at(0.5);
    if (!result.gpu || work.bytes == 0) return {};
    const double memory = work.bytes / ms / 1e6 / result.copy_gbs;
    if (!result.tflops || !work.tensor_cores) {
        if (work.flops / work.bytes > kMemoryBound) return {};
        return {"copy_bandwidth", memory};
    }
    const double compute = work.flops / ms / 1e9 / *result.tflops;
    return compute > memory ? Share{"dense_rate", compute} : Share{"copy_bandwidth", memory};
}

void print_result(const BenchWork& work, const Result& result, bool json) {
    const double median = result.samples.at(0.5);
    const double low = result.samples.at(0.1);
    const double high = result.samples.at(0.9);
    const double gbs = work.bytes / median / 1e6;
    const double tflops = work.flops / median / 1e9;
    const Share share = share_of(work, result);
    const bool jit = result.ran != "reference";
    if (json) {
        const auto optional = [](bool known, const Json& value) {
            return known ? value : Json(nullptr);
        };
        print_json(
            {{"op", work.operation},
             {"backend", jit ? "jit" : "reference"},
             {"spec", optional(jit, result.ran)},
             {"device", result.device},
             {"samples", result.samples.sorted.size()},
             {"median_ms", median},
             {"p10_ms", low},
             {"p90_ms", high},
             {"tflops", optional(work.flops != 0, tflops)},
             {"gbs", gbs},
             {"copy_gbs", optional(result.gpu, result.copy_gbs)},
             {"dense_tflops", optional(result.tflops.has_value(), result.tflops.value_or(0))},
             {"share_of", optional(!share.of.empty(), share.of)},
             {"share", optional(!share.of.empty(), share.value)}});
        return;
    }
    if (!result.gpu) {
        print("The reference backend, on the CPU, by the wall clock: no GPU was used.\n");
    }
    Table table({"ran", jit ? result.ran : "the reference backend"});
    table.add({"on", result.device});
    const std::size_t count = result.samples.sorted.size();
    table.add({"time", fmt::format("median {:.4f} ms, p10 {:.4f}, p90 {:.4f}, {} sample{}", median,
                                   low, high, count, count == 1 ? "" : "s")});
    if (work.flops != 0) table.add({"arithmetic", fmt::format("{:.4g} TFLOPS", tflops)});
    table.add({"memory", fmt::format("{:.4g} GB/s", gbs)});
    if (share.of == "dense_rate") {
        table.add({"share", fmt::format("{:.1f}% of the card's dense rate, {:.0f} TFLOPS",
                                        100 * share.value, *result.tflops)});
    } else if (!share.of.empty()) {
        table.add({"share", fmt::format("{:.1f}% of the copy bandwidth measured here, {:.0f} GB/s",
                                        100 * share.value, result.copy_gbs)});
    }
    print(table.text());
}

Result on_gpu(int ordinal, const BenchOptions& options,
              const std::function<BenchCall(Device)>& make) {
    GpuBench bench(ordinal);
    const std::vector<BenchCall> calls = bench.calls(make);
    Result result;
    result.gpu = true;
    result.device = bench.gpu().name;
    result.samples = bench.measure(calls, options.samples);
    result.ran = last_run();
    result.copy_gbs = bench.copy_bandwidth();
    result.tflops = dense_tflops(result.device);
    return result;
}

void require_room(const BenchCall& call) {
    const double bytes = bytes_of(call.tensors);
    const double own =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (bytes <= own) return;
    throw Error(ErrorCode::out_of_memory,
                fmt::format("this problem takes {}, and this machine has {} of memory: make it "
                            "smaller",
                            text_of_bytes(bytes), text_of_bytes(own)));
}

// The values of a call's tensors, to which they are made to point.
std::vector<std::vector<std::byte>> filled(const BenchCall& call) {
    std::vector<std::vector<std::byte>> memory;
    for (Tensor* tensor : call.tensors) {
        const auto content = call.contents.find(tensor);
        auto& values = memory.emplace_back(content != call.contents.end()
                                               ? content->second
                                               : bench_values(tensor->dtype, bytes_of(*tensor)));
        tensor->data = values.data();
    }
    return memory;
}

Result on_host(const BenchOptions& options, const std::function<BenchCall(Device)>& make) {
    constexpr std::chrono::seconds kBudget{3};
    const BenchCall call = make({DeviceType::cpu, 0});
    require_room(call);
    const std::vector<std::vector<std::byte>> memory = filled(call);
    Result result;
    result.device = fmt::format("CPU, {} threads", std::thread::hardware_concurrency());
    const std::size_t limit = options.samples > 0 ? static_cast<std::size_t>(options.samples) : 100;
    call.run();
    const auto start = Clock::now();
    auto& samples = result.samples.sorted;
    while (samples.size() < limit &&
           (options.samples > 0 || samples.empty() || Clock::now() - start < kBudget)) {
        const auto before = Clock::now();
        call.run();
        samples.push_back(std::chrono::duration<double, std::milli>(Clock::now() - before).count());
    }
    std::sort(samples.begin(), samples.end());
    result.ran = last_run();
    return result;
}

struct ProblemOptions : BenchOptions {
    FieldProblem problem;

    explicit ProblemOptions(const OperationInfo& operation) : problem(operation) {}
};

int bench_problem(const ProblemOptions& options, bool json) {
    const BackendChoice backend = choose_backend(options.backend);
    const BenchWork work = work_of(options.problem);
    const auto make = [&options](Device device) { return call_of(options.problem, device); };
    const Result result =
        backend.gpu ? on_gpu(*backend.gpu, options, make) : on_host(options, make);
    if (result.ran.empty())
        refuse("there is nothing to compute in this problem, and nothing to time");
    print_result(work, result, json);
    return kSuccess;
}

}  // namespace

void BenchOptions::add_to(CLI::App& command, const OperationInfo& operation) {
    backend.add_to(command, operation);
    add_integer(command, "--samples", samples, 1, 1000000,
                "Samples to take (as many as fit into three seconds)");
}

double Samples::at(double fraction) const {
    if (sorted.empty()) return 0;
    const double place = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], place - std::floor(place));
}

void add_bench(CLI::App& root, Request& request) {
    CLI::App& group = add_group(root, request, "bench",
                                "Time one operation: median, spread, and the share of the limit");
    for (const OperationInfo& operation : operations()) {
        const auto options = std::make_shared<ProblemOptions>(operation);
        CLI::App& command =
            add_command(group, request, command_of(operation), operation.does,
                        [options](bool json) { return bench_problem(*options, json); });
        options->problem.add_to(command);
        options->add_to(command, operation);
    }
}

}  // namespace jitney::cli
