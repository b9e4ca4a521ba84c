// What users of FP8 products stumble over: empty sizes, exactness at long k, numbers that are none,
// saturation, 64-bit offsets, repeatability, graphs.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "jitney/backend.hpp"
#include "tests/gpu/fp8_gemm_case.hpp"
#include "tests/gpu/graph.hpp"

namespace jitney::tests {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Fp8GemmCase case_of(std::int64_t m, std::int64_t n, std::int64_t k) {
    Fp8GemmCase test;
    test.m = m;
    test.n = n;
    test.k = k;
    return test;
}

std::vector<std::byte> bytes_of(HostTensor tensor) {
    const auto storage = tensor.storage();
    return {storage.begin(), storage.end()};
}

// The relative error of the Frobenius norm.
double error_of(const HostTensor& actual, const HostTensor& expected) {
    double difference = 0;
    double norm = 0;
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
        difference += std::pow(actual.get(i) - expected.get(i), 2);
        norm += std::pow(expected.get(i), 2);
    }
    return std::sqrt(difference / norm);
}

double error_at_long_k(bool fast_accum, Random& random) {
    Fp8GemmCase test = case_of(64, 64, 16384);
    test.out = DType::fp32;
    test.fast_accum = fast_accum;
    Fp8GemmProblem problem(test, random);
    const Fp8GemmOnDevice device(problem);
    fp8_gemm(problem.args(device.views()));
    problem.run_reference();
    return error_of(device.out.download(), problem.out);
}

}  // namespace

TEST_CASE("fp8_gemm: m or n of 0 does nothing, k of 0 gives the bias or zeros") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const auto& [m, n, k] : {std::tuple{0, 48, 64}, std::tuple{48, 0, 64}, std::tuple{0, 0, 0},
                                  std::tuple{33, 48, 0}, std::tuple{1, 1, 0}}) {
        for (const bool with_bias : {false, true}) {
            Fp8GemmCase test = case_of(m, n, k);
            if (with_bias) test.bias = DType::fp32;
            // A sum of nothing is 0, whatever the scale.
            if (k == 0) test.scale = std::numeric_limits<double>::infinity();
            run_fp8_gemm(test, random);
            test.trans_a = true;
            test.trans_b = false;
            run_fp8_gemm(test, random);
        }
    }
}

TEST_CASE("fp8_gemm: a long k keeps the exactness of fp32, unless asked otherwise") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    const double precise = error_at_long_k(false, random);
    const double fast = error_at_long_k(true, random);
    MESSAGE("relative Frobenius error at k 16384: ", precise, ", fast_accum ", fast);
    CHECK(precise < 1e-3);
    CHECK(fast < 5e-2);
}

TEST_CASE("fp8_gemm: NaN reaches the results of its row and column alone, and amax") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const DType out : {DType::bf16, DType::fp8_e4m3}) {
        Fp8GemmCase test = case_of(40, 80, 208);
        test.out = out;
        test.amax = out != DType::bf16;
        Fp8GemmProblem problem(test, random);
        problem.a.put({7, 100}, kNan);
        problem.b.put({20, 3}, kNan);
        const Fp8GemmOnDevice device(problem);
        fp8_gemm(problem.args(device.views()));
        const HostTensor actual = device.out.download();
        for (std::int64_t row = 0; row < test.m; ++row) {
            for (std::int64_t column = 0; column < test.n; ++column)
                CHECK(std::isnan(actual.at({row, column})) == (row == 7 || column == 20));
        }
        if (test.amax) CHECK(std::isnan(device.amax->download().get(0)));
    }
}

TEST_CASE("fp8_gemm: an output in FP8 saturates, and amax tells by how much") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const DType out : {DType::fp8_e4m3, DType::fp8_e5m2}) {
        Fp8GemmCase test = case_of(32, 32, 64);
        test.out = out;
        test.amax = true;
        Fp8GemmProblem problem(test, random);
        problem.multiplier->set(0, 1e9);
        const Fp8GemmOnDevice device(problem);
        fp8_gemm(problem.args(device.views()));
        problem.run_reference();
        const double largest = out == DType::fp8_e4m3 ? 448.0 : 57344.0;
        const HostTensor actual = device.out.download();
        for (std::int64_t i = 0; i < actual.elements(); ++i)
            CHECK(std::abs(actual.get(i)) == largest);
        const double expected = problem.amax->get(0);
        CHECK(std::abs(device.amax->download().get(0) - expected) < 1e-3 * expected);
    }
}

TEST_CASE("fp8_gemm: dequant_scale multiplies the product, and not the bias") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const double scale : {1.0, 0.001, 250.0}) {
        Fp8GemmCase test = case_of(48, 64, 96);
        test.out = DType::fp32;
        test.bias = DType::fp32;
        test.scale = scale;
        run_fp8_gemm(test, random);
    }
}

TEST_CASE("fp8_gemm: rows lie further apart than 32 bits tell" *
          doctest::test_suite(kLargeMemory)) {
    if (!has_fp8_tensor_cores() || !has_free_memory(14)) return;
    Random random = Random::fresh();
    constexpr std::int64_t distance = std::int64_t{3} << 30;
    Fp8GemmCase test = case_of(3, 32, 64);
    test.few_bits = adds_in_few_bits();
    test.out = DType::fp8_e4m3;
    Fp8GemmProblem problem(test, random);
    const Fp8GemmOnDevice device(problem);
    DeviceBuffer a(static_cast<std::size_t>(2 * distance + test.k));
    const DeviceBuffer out(static_cast<std::size_t>(2 * distance + test.n));
    HostTensor copy = problem.a;
    const Tensor rows = copy.view();
    for (std::int64_t row = 0; row < test.m; ++row) {
        const auto* from = static_cast<const std::byte*>(rows.data) + row * rows.strides[0];
        a.upload({from, static_cast<std::size_t>(test.k)},
                 static_cast<std::size_t>(row * distance));
    }
    Fp8GemmArgs args = problem.args(device.views());
    args.a.data = a.data();
    args.a.strides[0] = distance;
    args.out.data = out.data();
    args.out.strides[0] = distance;
    fp8_gemm(args);
    synchronize();
    problem.run_reference();
    HostTensor result = problem.out;
    const Tensor to = result.view();
    for (std::int64_t row = 0; row < test.m; ++row) {
        auto* const target = static_cast<std::byte*>(to.data) + row * to.strides[0];
        out.download({target, static_cast<std::size_t>(test.n)},
                     static_cast<std::size_t>(row * distance));
    }
    const std::string difference = problem.difference(result);
    CHECK_MESSAGE(difference.empty(), difference);
}

TEST_CASE("fp8_gemm: the same call gives the same bits, also where k is divided among blocks") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    Fp8GemmCase test = case_of(64, 512, 8192);
    test.out = DType::fp32;
    Fp8GemmProblem problem(test, random);
    const Fp8GemmOnDevice device(problem);
    const Fp8GemmArgs args = problem.args(device.views());
    fp8_gemm(args);
    const std::vector<std::byte> first = bytes_of(device.out.download());
    for (int i = 0; i < 20; ++i)
        fp8_gemm(args);
    CHECK(bytes_of(device.out.download()) == first);
}

TEST_CASE("fp8_gemm: calls that follow each other wait for each other's results") {
    if (!has_fp8_tensor_cores()) return;
    // out = a b in FP8, which is the a of the next call, and so on: a chain of dependent launches.
    Random random = Random::fresh();
    Fp8GemmCase test = case_of(16, 512, 512);
    test.out = DType::fp8_e4m3;
    Fp8GemmProblem problem(test, random);
    problem.scale.set(0, 1.0 / std::sqrt(512.0));
    problem.multiplier->set(0, 1.0);
    const Fp8GemmOnDevice device(problem);
    Fp8GemmArgs there = problem.args(device.views());
    Fp8GemmArgs back = there;
    back.a = there.out;
    back.out = there.a;
    constexpr int kSteps = 15;
    for (int i = 0; i < kSteps; ++i)
        fp8_gemm(i % 2 == 0 ? there : back);
    const std::vector<std::byte> chained = bytes_of(device.out.download());
    const Fp8GemmOnDevice again(problem);
    there = problem.args(again.views());
    back = there;
    back.a = there.out;
    back.out = there.a;
    for (int i = 0; i < kSteps; ++i) {
        fp8_gemm(i % 2 == 0 ? there : back);
        synchronize();
    }
    CHECK(bytes_of(again.out.download()) == chained);
}

TEST_CASE("fp8_gemm: a captured call reads its scale anew at each replay") {
    if (!has_fp8_tensor_cores() || !has_graphs()) return;
    Random random = Random::fresh();
    for (const std::int64_t m : {16, 64}) {
        Fp8GemmCase test = case_of(m, 256, 4096);
        test.few_bits = adds_in_few_bits();
        test.out = DType::fp32;
        Fp8GemmProblem problem(test, random);
        Fp8GemmOnDevice device(problem);
        const Fp8GemmArgs args = problem.args(device.views());
        const TestStream stream;
        fp8_gemm(args, stream);
        const Graph graph(stream, [&] { fp8_gemm(args, stream); });
        for (const double scale : {0.5, 2.0}) {
            problem.scale.set(0, scale);
            device.scale.upload(problem.scale);
            graph.replay(stream);
            stream.synchronize();
            problem.test.scale = scale;
            problem.run_reference();
            const std::string difference = problem.difference(device.out.download());
            CHECK_MESSAGE(difference.empty(), difference);
        }
    }
}

TEST_CASE("fp8_gemm under the sanitizer" * doctest::test_suite("sanitizer")) {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    // Narrow tiles, K among warps and among blocks, the widest tile.
    for (const auto& [m, n, k] : {std::tuple{5, 40, 300}, std::tuple{20, 70, 528},
                                  std::tuple{64, 64, 2048}, std::tuple{1030, 1100, 144}}) {
        for (const bool transposed : {false, true}) {
            Fp8GemmCase test = case_of(m, n, k);
            test.trans_a = transposed;
            test.trans_b = !transposed;
            test.bias = DType::bf16;
            test.out = transposed ? DType::fp8_e4m3 : DType::bf16;
            test.amax = transposed;
            run_fp8_gemm(test, random);
            if (m > 100) continue;
            test.a_rows = {3, 2};
            run_fp8_gemm(test, random);
        }
    }
}

}  // namespace jitney::tests
