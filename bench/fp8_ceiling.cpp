// What the tensor cores do with FP8 out of registers, without memory: the most that fp8_gemm_mma
// could reach on this GPU. A warp multiplies fragments of 64x64, over and over:
//   fp16      products of fp16 alone
//   unpacked  fragments of FP8 unpacked to fp16 once, then products of fp16 (the constant unpack=1)
//   fp8       mma.sync of FP8, as the compiler makes it
//
//   bench_fp8_ceiling [--json]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/arch.hpp"
#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/image.hpp"
#include "runtime/launch.hpp"

namespace {

using namespace jitney;
using runtime::check;
using runtime::driver;

constexpr const char* kSource = R"(#include "common/fp8_mma.cuh"
#include "common/mma.cuh"

namespace jitney {

struct CeilingParams {
    const unsigned* codes;
    float* out;
    int rounds;
    unsigned change;  // 0, which the compiler does not know
};

// 16 rows of A, or columns of B, four or eight times.
constexpr int kM = 4;
constexpr int kN = 8;

template <bool upper, bool unpacks>
JITNEY_DEVICE void half_step(float (&c)[kM][kN][4], const unsigned (&a)[kM][4],
                             const unsigned (&b)[kN][2]) {
    unsigned wide[kM][4];
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
            wide[i][r] = unpacks ? fp8_unpack<kFp8E4m3, upper>(a[i][r]) : a[i][r];
#pragma unroll
    for (int j = 0; j < kN; ++j) {
        const unsigned b0 = unpacks ? fp8_unpack<kFp8E4m3, upper>(b[j][0]) : b[j][0];
        const unsigned b1 = unpacks ? fp8_unpack<kFp8E4m3, upper>(b[j][1]) : b[j][1];
#pragma unroll
        for (int i = 0; i < kM; ++i)
            mma_m16n8k16<kFp16>(c[i][j], wide[i], b0, b1);
    }
}

template <int kind>
__global__ void __launch_bounds__(128, 2) ceiling(const __grid_constant__ CeilingParams params) {
    unsigned a[kM][4];
    unsigned b[kN][2];
    float c[kM][kN][4] = {};
    const unsigned* codes = params.codes + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
            a[i][r] = codes[(4 * i + r) * 128];
#pragma unroll
    for (int j = 0; j < kN; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r)
            b[j][r] = codes[(4 * kM + 2 * j + r) * 128];
#pragma unroll 1
    for (int round = 0; round < params.rounds; ++round) {
        if constexpr (kind == 2) {
#pragma unroll
            for (int j = 0; j < kN; ++j)
#pragma unroll
                for (int i = 0; i < kM; ++i)
                    mma_m16n8k32<kFp8E4m3, kFp8E4m3>(c[i][j], a[i], b[j][0], b[j][1]);
        } else {
            half_step<false, kind == 1>(c, a, b);
            half_step<true, kind == 1>(c, a, b);
        }
        // New codes, as far as the compiler can tell, so that they are unpacked anew.
#pragma unroll
        for (int i = 0; i < kM; ++i)
#pragma unroll
            for (int r = 0; r < 4; ++r)
                a[i][r] ^= params.change;
#pragma unroll
        for (int j = 0; j < kN; ++j)
#pragma unroll
            for (int r = 0; r < 2; ++r)
                b[j][r] ^= params.change;
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
        for (int j = 0; j < kN; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum += c[i][j][e];
    params.out[blockIdx.x * 128 + threadIdx.x] = sum;
}

}  // namespace jitney
)";

// As in the source above.
struct CeilingParams {
    CUdeviceptr codes;
    CUdeviceptr out;
    int rounds;
    unsigned change;
};

constexpr int kThreads = 128;
constexpr int kRounds = 4000;
constexpr double kFlops = 2.0 * 64 * 64 * 32;  // of a warp in a round
constexpr std::array<std::string_view, 3> kKinds = {"fp16", "unpacked", "fp8"};

class Memory {
  public:
    explicit Memory(std::size_t bytes) {
        check(driver().cuMemAlloc(&address, bytes), "cuMemAlloc");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { driver().cuMemFree(address); }

    CUdeviceptr address = 0;
};

runtime::Kernel load(int kind, const runtime::DeviceInfo& device) {
    runtime::KernelSource source;
    source.specialization =
        fmt::format("the ceiling of {}", kKinds[static_cast<std::size_t>(kind)]);
    source.arch = arch_of_capability(device.major, device.minor).text();
    source.translation_unit = kSource;
    source.function = fmt::format("jitney::ceiling<{}>", kind);
    runtime::Rejection rejection;
    CUkern_st* const handle = runtime::load_image(runtime::compile(source).entry, &rejection);
    if (handle == nullptr) throw Error(ErrorCode::driver, rejection.reason);
    return runtime::prepare_kernel(handle, 0, device, source.specialization);
}

// Numbers near 1: what the units draw, and how high they clock, depends on the data.
void fill(const Memory& codes, std::size_t count) {
    std::vector<unsigned> values(count);
    unsigned state = 1;
    for (unsigned& value : values) {
        state = state * 1664525u + 1013904223u;
        value = (state & 0x8f8f8f8fu) | 0x30303030u;
    }
    check(driver().cuMemcpyHtoDAsync(codes.address, values.data(), 4 * count, nullptr),
          "copying codes to the GPU");
    check(driver().cuStreamSynchronize(nullptr), "waiting for the GPU");
}

double milliseconds(const std::function<void()>& work) {
    CUevent start = nullptr;
    CUevent stop = nullptr;
    check(driver().cuEventCreate(&start, CU_EVENT_DEFAULT), "cuEventCreate");
    check(driver().cuEventCreate(&stop, CU_EVENT_DEFAULT), "cuEventCreate");
    check(driver().cuEventRecord(start, nullptr), "cuEventRecord");
    work();
    check(driver().cuEventRecord(stop, nullptr), "cuEventRecord");
    check(driver().cuEventSynchronize(stop), "cuEventSynchronize");
    float time = 0;
    check(driver().cuEventElapsedTime(&time, start, stop), "cuEventElapsedTime");
    driver().cuEventDestroy(start);
    driver().cuEventDestroy(stop);
    return static_cast<double>(time);
}

double tflops(int kind, const runtime::DeviceInfo& device) {
    const runtime::Kernel kernel = load(kind, device);
    const unsigned blocks = 2 * static_cast<unsigned>(device.multiprocessors);
    const Memory codes(32 * kThreads * 4);
    const Memory out(std::size_t{blocks} * kThreads * 4);
    fill(codes, 32 * kThreads);
    CeilingParams params{codes.address, out.address, kRounds, 0};
    runtime::LaunchShape shape;
    shape.grid.x = blocks;
    shape.block.x = kThreads;
    void* parameters[] = {&params};
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) {
        times.push_back(milliseconds([&] { runtime::launch(kernel, shape, parameters, nullptr); }));
    }
    std::sort(times.begin(), times.end());
    return blocks * (kThreads / 32) * kFlops * kRounds / times[times.size() / 2] / 1e9;
}

}  // namespace

int main(int argc, char** argv) try {
    const bool json = argc == 2 && std::string_view(argv[1]) == "--json";
    if (argc > 1 && !json) {
        fmt::print(stderr, "usage: bench_fp8_ceiling [--json]\n");
        return 2;
    }
    const runtime::DeviceInfo& device = runtime::current_device(0);
    if (10 * device.major + device.minor < 89) {
        throw Error(ErrorCode::unsupported, device.name + " has no FP8 tensor cores");
    }
    nlohmann::json result = {{"card", device.name}};
    if (!json) fmt::print("{}\n", device.name);
    for (int kind = 0; kind < 3; ++kind) {
        const std::string_view name = kKinds[static_cast<std::size_t>(kind)];
        const double rate = tflops(kind, device);
        result["tflops"][std::string(name)] = rate;
        if (!json) fmt::print("{:10}{:.1f} TFLOPS\n", name, rate);
    }
    if (json) fmt::print("{}\n", result.dump());
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
}
