// What a call costs on the host: that of every operation, a run of its plan with a workspace of the
// caller's, and a kernel of one's own, against the bare cuLaunchKernelEx of the same kernels with
// the same parameters, on one GPU, in one run.
//
//   bench_launch [--json] [--batches N]
//
// The batches of the two take turns, each long enough to time and short enough for the GPU's queue;
// what is shown are medians over the batches.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/own_kernel.hpp"
#include "bench/launch_calls.hpp"
#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "jitney/kernel.hpp"
#include "jitney/plan.hpp"
#include "operations/append_kv/operation.hpp"
#include "operations/attention/operation.hpp"
#include "operations/fp8_gemm/operation.hpp"
#include "operations/fp8_linear/operation.hpp"
#include "operations/fp8_quantize/operation.hpp"
#include "operations/merge_states/operation.hpp"
#include "operations/path.hpp"
#include "operations/rotary/operation.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"

namespace {

using namespace jitney;
using namespace jitney::bench;
using runtime::check;
using runtime::driver;

constexpr int kCallsABatch = 100;

// The launches of a call with everything made beforehand.
template <class Args>
class BareLaunches {
  public:
    using Op = OperationOf<Args>;

    BareLaunches(const path::Prepared<Args>& prepared, const Args& args, Stream stream)
        : params_(prepared.params) {
        // The memory that the stream keeps, and gives to the calls, too.
        const HeldScratch held({}, Op::scratch(prepared.choice), stream);
        Op::set_addresses(params_, args, prepared.choice, held.place());
        std::size_t number = 0;
        for (const Step& step : prepared.steps.all())
            add(*prepared.kernels[number++], step.geometry, stream);
    }
    BareLaunches(const BareLaunches&) = delete;
    BareLaunches& operator=(const BareLaunches&) = delete;

    void operator()() {
        for (std::size_t i = 0; i < count_; ++i) {
            void* parameters[1] = {params_.of(i)};
            check(driver().cuLaunchKernelEx(&launches_[i].config, launches_[i].kernel, parameters,
                                            nullptr),
                  "cuLaunchKernelEx");
        }
    }
    std::size_t count() const { return count_; }

  private:
    struct Launch {
        CUfunction kernel;
        CUlaunchConfig config;
        std::array<CUlaunchAttribute, 2> attributes;
    };

    void add(const runtime::Kernel& kernel, const policy::Geometry& geometry, Stream stream) {
        Launch& launch = launches_[count_++];
        launch.kernel = reinterpret_cast<CUfunction>(kernel.handle);
        CUlaunchConfig& config = launch.config;
        config.gridDimX = geometry.grid[0];
        config.gridDimY = geometry.grid[1];
        config.gridDimZ = geometry.grid[2];
        config.blockDimX = geometry.block[0];
        config.blockDimY = geometry.block[1];
        config.blockDimZ = geometry.block[2];
        config.sharedMemBytes = static_cast<unsigned>(geometry.shared_bytes);
        config.hStream = stream;
        config.attrs = launch.attributes.data();
        // Without its cluster a kernel that sends to the blocks beside it is illegal.
        if (geometry.cluster != policy::Geometry{}.cluster) {
            CUlaunchAttribute& attribute = launch.attributes[config.numAttrs++];
            attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attribute.value.clusterDim.x = geometry.cluster[0];
            attribute.value.clusterDim.y = geometry.cluster[1];
            attribute.value.clusterDim.z = geometry.cluster[2];
        }
        if (geometry.programmatic) {
            CUlaunchAttribute& attribute = launch.attributes[config.numAttrs++];
            attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attribute.value.programmaticStreamSerializationAllowed = 1;
        }
    }

    typename Op::Params params_;
    std::array<Launch, Steps::most> launches_{};
    std::size_t count_ = 0;
};

struct Result {
    std::string name;
    std::string spec;
    std::size_t launches = 1;
    double bare_ns = 0;
    double call_ns = 0;

    double more_ns() const { return (call_ns - bare_ns) / static_cast<double>(launches); }
};

double time_batch(Stream stream, const std::function<void()>& call) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallsABatch; ++i)
        call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
    return spent.count() / kCallsABatch;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

Result compare(const std::string& name, int batches, Stream stream,
               const std::function<void()>& bare, const std::function<void()>& call) {
    Result result;
    result.name = name;
    call();
    result.spec = last_run();
    std::vector<double> bare_ns;
    std::vector<double> call_ns;
    for (int i = -batches / 10; i < batches; ++i) {  // the first ones warm up
        const double of_bare = time_batch(stream, bare);
        const double of_call = time_batch(stream, call);
        if (i < 0) continue;
        bare_ns.push_back(of_bare);
        call_ns.push_back(of_call);
    }
    result.bare_ns = median(bare_ns);
    result.call_ns = median(call_ns);
    return result;
}

// With and without a plan, whose workspace is the caller's.
template <class Args>
std::vector<Result> bench_call(const std::string& name, const Args& args,
                               void (*call)(const Args&, Stream), int batches, Stream stream) {
    using Op = OperationOf<Args>;
    const auto problem = Op::check(args, checks::Data::present);
    const auto prepared = path::prepare(args, problem, Decision{}, stream);
    BareLaunches<Args> bare(*prepared, args, stream);
    const Plan<Args> plan(args);
    const Memory memory(std::max<std::size_t>(plan.workspace_bytes(), 1));
    Args planned = args;
    if constexpr (requires { planned.workspace; }) {
        if (plan.workspace_bytes() != 0) {
            planned.workspace = {memory.data(), plan.workspace_bytes()};
            init_workspace(planned.workspace, Op::device(args), stream);
        }
    }
    std::vector<Result> results = {
        compare(name, batches, stream, std::ref(bare), [&] { call(args, stream); }),
        compare(name + ", plan", batches, stream, std::ref(bare),
                [&] { plan.run(planned, stream); })};
    for (Result& result : results)
        result.launches = bare.count();
    return results;
}

// A kernel of one's own, with four parameters.
Result bench_own(int batches, Stream stream) {
    const jitney::Kernel kernel({.source =
                                     "__global__ void saxpy(int n, float a, const float* x, "
                                     "float* y) {\n"
                                     "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                     "    if (i < n) y[i] = a * x[i] + y[i];\n"
                                     "}\n",
                                 .function = "saxpy",
                                 .file = "saxpy.cu"});
    const Memory memory(1024 * 4);
    int n = 1024;
    float a = 0.5f;
    auto* x = static_cast<float*>(memory.data());
    kernel.load();
    const runtime::DeviceInfo& device = runtime::current_device();
    const detail::LoadedOwnKernel& loaded =
        *KernelAccess::own(kernel).loaded[static_cast<std::size_t>(device.ordinal)].load();
    CUlaunchConfig config{};
    config.gridDimX = 4;
    config.blockDimX = 256;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    std::array<void*, 4> parameters{&n, &a, &x, &x};
    const KernelLaunch shape{.grid = {4}, .block = {256}, .stream = stream};
    Result result = compare(
        "own kernel", batches, stream,
        [&] {
            check(driver().cuLaunchKernelEx(&config,
                                            reinterpret_cast<CUfunction>(loaded.kernel.handle),
                                            parameters.data(), nullptr),
                  "cuLaunchKernelEx");
        },
        [&] { kernel.launch(shape, n, a, x, x); });
    result.spec = kernel.spec(device.arch);
    return result;
}

void print(const std::vector<Result>& results, bool json) {
    const std::string& card = runtime::current_device().name;
    if (json) {
        nlohmann::json cells = nlohmann::json::array();
        for (const Result& result : results) {
            cells.push_back({{"name", result.name},
                             {"spec", result.spec},
                             {"launches", result.launches},
                             {"bare_ns", result.bare_ns},
                             {"call_ns", result.call_ns},
                             {"more_ns", result.more_ns()}});
        }
        fmt::print("{}\n", nlohmann::json{{"card", card}, {"results", cells}}.dump(2));
        return;
    }
    fmt::print("host time a call on {}, median, ns; more: a launch\n", card);
    fmt::print("{:<28}{:>10}{:>10}{:>10}{:>10}  {}\n", "", "launches", "bare", "jitney", "more",
               "specialization");
    for (const Result& result : results) {
        fmt::print("{:<28}{:>10}{:>10.0f}{:>10.0f}{:>10.0f}  {}\n", result.name, result.launches,
                   result.bare_ns, result.call_ns, result.more_ns(), result.spec);
    }
}

void run(int batches, bool json) {
    runtime::current_device();
    CUstream stream = nullptr;
    check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    std::vector<Result> results;
    Tensors tensors;
    const auto add = [&](const std::string& name, const auto& args, auto call) {
        const auto more = bench_call(name, args, call, batches, stream);
        results.insert(results.end(), more.begin(), more.end());
    };
    add("attention, decode", attention_call(tensors, 1, 64), &attention);
    add("attention, split", attention_call(tensors, 1, 4096), &attention);
    add("attention, prefill", attention_call(tensors, 128, 128), &attention);
    add("rotary_emb", rotary_call(tensors), &rotary_emb);
    add("append_kv", append_call(tensors), &append_kv);
    std::array<PartialState, 2> parts;
    add("merge_states", merge_call(tensors, parts), &merge_states);
    add("fp8_quantize", cast_call(tensors, false), &fp8_quantize);
    add("fp8_quantize, dynamic", cast_call(tensors, true), &fp8_quantize);
    add("fp8_gemm", product_call(tensors), &fp8_gemm);
    const Fp8LinearArgs linear = linear_call(tensors);
    add("fp8_linear", linear, &fp8_linear);
    add("fp8_linear_backward", backward_call(tensors, linear), &fp8_linear_backward);
    results.push_back(bench_own(batches, stream));
    check(driver().cuStreamDestroy(stream), "cuStreamDestroy");
    print(results, json);
}

}  // namespace

int main(int argc, char** argv) {
    int batches = 300;
    bool json = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--json") {
            json = true;
        } else if (argument == "--batches" && i + 1 < argc) {
            const std::string_view value = argv[++i];
            std::from_chars(value.data(), value.data() + value.size(), batches);
            batches = std::max(batches, 1);
        } else {
            fmt::print(stderr, "usage: bench_launch [--json] [--batches N]\n");
            return 2;
        }
    }
    try {
        run(batches, json);
    } catch (const Error& error) {
        fmt::print(stderr, "error: {}\n", error.what());
        return 1;
    }
    return 0;
}
