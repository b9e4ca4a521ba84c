// fp8_gemm on Hopper's own kernel, by name: every tile, formats, outputs, biases, edges, rows that
// are no neighbours, graphs.
#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "tests/gpu/fp8_gemm_case.hpp"
#include "tests/gpu/graph.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kKernel = "fp8_gemm_wgmma";
constexpr std::array kFp8 = {DType::fp8_e4m3, DType::fp8_e5m2};
constexpr std::array kOutputs = {DType::bf16, DType::fp16, DType::fp32, DType::fp8_e4m3,
                                 DType::fp8_e5m2};

// False, with a message, where the GPU is another.
bool has_kernel() {
    Fp8GemmCase test;
    Random random(1);
    Fp8GemmProblem problem(test, random);
    const Fp8GemmOnDevice device(problem);
    for (const auto& candidate : explain(problem.args(device.views())).candidates) {
        if (candidate.kernel == kKernel && candidate.accepted) return true;
    }
    MESSAGE("left out: this GPU has no wgmma");
    return false;
}

Fp8GemmCase case_of(std::int64_t m, std::int64_t n, std::int64_t k) {
    Fp8GemmCase test;
    test.m = m;
    test.n = n;
    test.k = k;
    return test;
}

// The copy engine takes rows that begin at multiples of 16 bytes.
RowLayout rows_for(std::int64_t k, Random& random) {
    const std::int64_t to_next = (16 - k % 16) % 16;
    return {16 * random.integer(0, 2), to_next + 16 * random.integer(0, 2)};
}

void run(Fp8GemmCase test, Random& random) {
    test.a_rows = rows_for(test.k, random);
    test.b_rows = rows_for(test.k, random);
    run_fp8_gemm(test, random, kKernel);
}

std::vector<std::byte> bytes_of(HostTensor tensor) {
    const auto storage = tensor.storage();
    return {storage.begin(), storage.end()};
}

}  // namespace

TEST_CASE("fp8_gemm on Hopper: every m up to 140, beside tiles and on them") {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    for (std::int64_t m = 1; m <= 140; m += is_quick() ? 29 : 5) {
        Fp8GemmCase test = case_of(m, random.integer(1, 40) * 8, random.integer(1, 700));
        if (random.chance(0.3)) test.n -= random.integer(0, 7);
        run(test, random);
    }
}

TEST_CASE("fp8_gemm on Hopper: four pairs of formats, five outputs, three biases, both sums" *
          doctest::test_suite(kLong)) {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    std::size_t at = 0;
    for (const DType a : kFp8) {
        for (const DType b : kFp8) {
            for (const DType out : kOutputs) {
                // By turns few rows and many.
                constexpr std::array<std::int64_t, 3> rows = {9, 200, 400};
                ++at;
                if (is_quick() && at % 5 != 0) continue;
                Fp8GemmCase test = case_of(rows[at % rows.size()], 304, 528);
                test.a = a;
                test.b = b;
                test.out = out;
                if (at % 3 == 1) test.bias = DType::bf16;
                if (at % 3 == 2) test.bias = DType::fp32;
                test.amax = size_of(out) == 1 && at % 2 == 0;
                test.fast_accum = at % 7 < 3;
                run(test, random);
                if (at % 4 != 0) continue;
                // Rows of the output that begin anywhere.
                test.n = 301;
                test.out_rows = {random.integer(0, 3), random.integer(0, 5)};
                run(test, random);
            }
        }
    }
}

TEST_CASE("fp8_gemm on Hopper: tiles for few rows and many, and more tiles than SMs") {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    std::set<std::string> seen;
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{5, 4096, 4096},
                                  {16, 14336, 512},
                                  {30, 4096, 2048},
                                  {48, 4096, 2048},
                                  {64, 4096, 4096},
                                  {100, 4096, 2048},
                                  {128, 2048, 8192},
                                  {256, 4096, 1024},
                                  {384, 4096, 512},
                                  {512, 4096, 512},
                                  {1024, 2048, 400},
                                  {1500, 4104, 336},
                                  {256, 256, 256},
                                  {1024, 1024, 1024}}) {
        Fp8GemmCase test = case_of(m, n, k);
        test.fast_accum = seen.size() % 2 == 1;
        test.out = m % 3 != 0 ? DType::bf16 : DType::fp8_e4m3;
        test.amax = test.out == DType::fp8_e4m3;
        if (random.chance(0.5)) test.bias = DType::bf16;
        run(test, random);
        const std::string ran(last_run());
        const std::size_t tile = ran.find("tile=");
        seen.insert(ran.substr(tile, ran.find(',', tile) - tile));
        if (is_quick() && seen.size() > 2) return;
    }
    std::string list;
    for (const std::string& tile : seen)
        list += tile + " ";
    MESSAGE("ran ", list);
    CHECK(seen.size() >= 6);
}

TEST_CASE("fp8_gemm on Hopper: random problems") {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    const int count = is_quick() ? 15 : 120;
    for (int i = 0; i < count; ++i) {
        const auto size = [&random](std::int64_t most) {
            return random.chance(0.4) ? random.integer(1, 64) : random.integer(1, most);
        };
        Fp8GemmCase test = case_of(size(500), size(700), size(2000));
        // Few kernels, so that most of the time is not the compiler's.
        if (random.chance(0.5)) test.bias = random.chance(0.5) ? DType::bf16 : DType::fp32;
        test.out_rows = {random.integer(0, 20), random.integer(0, 20)};
        run(test, random);
    }
}

TEST_CASE("fp8_gemm on Hopper: the same bits each time, and in a graph") {
    if (!has_kernel()) return;
    Random random = Random::fresh();
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{16, 1024, 8192}, {64, 4096, 4096}, {300, 2048, 1024}}) {
        Fp8GemmCase test = case_of(m, n, k);
        test.out = DType::fp32;
        Fp8GemmProblem problem(test, random);
        const Fp8GemmOnDevice device(problem);
        const Fp8GemmArgs args = problem.args(device.views());
        const Scope scope(kKernel);
        fp8_gemm(args);
        const auto first = bytes_of(device.out.download());
        for (int i = 0; i < 5; ++i)
            fp8_gemm(args);
        CHECK(bytes_of(device.out.download()) == first);
        if (!has_graphs()) continue;
        const TestStream stream;
        const Graph graph(stream, [&] {
            fp8_gemm(args, stream);
            fp8_gemm(args, stream);
        });
        for (int i = 0; i < 3; ++i)
            graph.replay(stream);
        stream.synchronize();
        CHECK(bytes_of(device.out.download()) == first);
    }
}

}  // namespace jitney::tests
