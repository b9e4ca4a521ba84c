// What a call costs on the host: jitney::attention(), a run of its plan with a workspace of the
// caller's, rotary_emb(), and a kernel of one's own, against the bare cuLaunchKernelEx of the same
// kernel with the same parameters, on one GPU, in one run.
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
#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "jitney/kernel.hpp"
#include "jitney/plan.hpp"
#include "operations/attention/operation.hpp"
#include "operations/check.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/rotary/fill.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/workspace.hpp"

namespace {

using namespace jitney;
using runtime::check;
using runtime::driver;

constexpr int kCallsABatch = 100;

class Memory {
  public:
    explicit Memory(std::size_t bytes) {
        check(driver().cuMemAlloc(&address_, bytes), "cuMemAlloc");
        check(driver().cuMemsetD8Async(address_, 0, bytes, nullptr), "cuMemsetD8Async");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { driver().cuMemFree(address_); }
    void* data() const { return reinterpret_cast<void*>(address_); }

  private:
    CUdeviceptr address_ = 0;
};

// A launch with everything made beforehand.
template <class Params>
class BareLaunch {
  public:
    BareLaunch(const policy::Spec& spec, const policy::Geometry& geometry, const Params& params,
               Stream stream)
        : kernel_(load_kernel(spec, runtime::current_device(), stream).handle), params_(params) {
        config_.gridDimX = geometry.grid[0];
        config_.gridDimY = geometry.grid[1];
        config_.gridDimZ = geometry.grid[2];
        config_.blockDimX = geometry.block[0];
        config_.blockDimY = geometry.block[1];
        config_.blockDimZ = geometry.block[2];
        config_.sharedMemBytes = static_cast<unsigned>(geometry.shared_bytes);
        config_.hStream = stream;
    }

    void operator()() {
        // The parameters of an operation, or those of a kernel.
        void* parameters[1];
        if constexpr (requires { params_.of(0); }) {
            parameters[0] = params_.of(0);
        } else {
            parameters[0] = &params_;
        }
        check(driver().cuLaunchKernelEx(&config_, reinterpret_cast<CUfunction>(kernel_), parameters,
                                        nullptr),
              "cuLaunchKernelEx");
    }

  private:
    CUkern_st* kernel_;
    Params params_;
    CUlaunchConfig config_{};
};

struct Result {
    std::string name;
    std::string spec;
    double bare_ns = 0;
    double call_ns = 0;

    double more_ns() const { return call_ns - bare_ns; }
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
    Result result{name, {}, 0, 0};
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

// With and without a plan.
std::vector<Result> bench_attention(const std::string& name, std::int64_t q_len,
                                    std::int64_t kv_len, int batches, Stream stream) {
    const Memory q(static_cast<std::size_t>(q_len * 8 * 64 * 2));
    const Memory out(static_cast<std::size_t>(q_len * 8 * 64 * 2));
    const Memory kv(static_cast<std::size_t>(kv_len * 2 * 64 * 2));
    AttentionArgs args;
    args.q = Tensor::contiguous(q.data(), DType::bf16, {1, q_len, 8, 64});
    args.out = Tensor::contiguous(out.data(), DType::bf16, {1, q_len, 8, 64});
    args.k = args.v = Tensor::contiguous(kv.data(), DType::bf16, {1, kv_len, 2, 64});
    args.causal = true;

    const policy::AttentionProblem problem = checks::check(args);
    const policy::AttentionChoice choice =
        policy::choose_attention(problem, facts_of(runtime::current_device())).value();
    attention(args, stream);
    // The memory that the stream keeps, and gives to the calls below, too.
    using Op = OperationOf<AttentionArgs>;
    Op::Params params = Op::fill(args, problem, choice);
    {
        const runtime::Workspace workspace = runtime::take_workspace(
            stream, choice.workspace.scratch_bytes(), choice.workspace.arrived_bytes);
        Op::set_addresses(params, args, choice, {workspace.data(), workspace.counters()});
    }
    BareLaunch bare(choice.spec, choice.geometry, params, stream);
    const AttentionPlan plan(args);
    const Memory memory(std::max<std::size_t>(plan.workspace_bytes(), 1));
    AttentionArgs planned = args;
    if (plan.workspace_bytes() != 0) {
        planned.workspace = {memory.data(), plan.workspace_bytes()};
        init_workspace(planned.workspace, planned.q.device, stream);
    }
    return {compare("attention, " + name, batches, stream, std::ref(bare),
                    [&] { attention(args, stream); }),
            compare("plan, " + name, batches, stream, std::ref(bare),
                    [&] { plan.run(planned, stream); })};
}

Result bench_rotary(int batches, Stream stream) {
    const Memory q(16 * 8 * 64 * 2);
    const Memory k(16 * 2 * 64 * 2);
    const Memory table(16 * 32 * 4);
    RotaryArgs args;
    args.q = args.q_out = Tensor::contiguous(q.data(), DType::bf16, {1, 16, 8, 64});
    args.k = args.k_out = Tensor::contiguous(k.data(), DType::bf16, {1, 16, 2, 64});
    args.cos = args.sin = Tensor::contiguous(table.data(), DType::fp32, {16, 32});

    const policy::RotaryProblem problem = checks::check(args);
    const policy::RotaryChoice choice =
        policy::rank_rotary(problem, facts_of(runtime::current_device())).choice.value();
    RotaryParams params = form_params(args, problem, choice);
    set_addresses(params, args);
    BareLaunch bare(choice.spec, choice.geometry, params, stream);
    return compare("rotary_emb", batches, stream, std::ref(bare),
                   [&] { rotary_emb(args, stream); });
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
                             {"bare_ns", result.bare_ns},
                             {"call_ns", result.call_ns},
                             {"more_ns", result.more_ns()}});
        }
        fmt::print("{}\n", nlohmann::json{{"card", card}, {"results", cells}}.dump(2));
        return;
    }
    fmt::print("host time a call on {}, median, ns\n", card);
    fmt::print("{:<22}{:>10}{:>10}{:>10}  {}\n", "", "bare", "jitney", "more", "specialization");
    for (const Result& result : results) {
        fmt::print("{:<22}{:>10.0f}{:>10.0f}{:>10.0f}  {}\n", result.name, result.bare_ns,
                   result.call_ns, result.more_ns(), result.spec);
    }
}

void run(int batches, bool json) {
    runtime::current_device();
    CUstream stream = nullptr;
    check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    std::vector<Result> results;
    const auto add = [&](const std::vector<Result>& more) {
        results.insert(results.end(), more.begin(), more.end());
    };
    add(bench_attention("decode", 1, 64, batches, stream));
    add(bench_attention("split", 1, 4096, batches, stream));
    add(bench_attention("prefill", 128, 128, batches, stream));
    results.push_back(bench_rotary(batches, stream));
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
