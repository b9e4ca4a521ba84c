// fp8_gemm with scales of rows and columns and of blocks, and with rows in groups, on the kernels
// that take them.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <utility>

#include "jitney/explain.hpp"
#include "tests/gpu/fp8_gemm_case.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kMma = "fp8_gemm_mma";
constexpr const char* kWgmma = "fp8_gemm_wgmma";

bool takes(const Fp8GemmArgs& args, const char* kernel) {
    for (const auto& candidate : explain(args).candidates) {
        if (candidate.kernel == kernel) return candidate.accepted;
    }
    return false;
}

// Rows of the operands that begin at multiples of 16 bytes, as the copy engine takes them.
RowLayout whole_chunks(std::int64_t columns) {
    return {0, (16 - columns % 16) % 16};
}

// The scales of a lie with the rows innermost, or with gaps.
void lay_out_scales(Fp8GemmCase& test, Random& random) {
    if (test.scales == kSideScales) {
        test.scale_a.one = random.chance(0.2);
        test.scale_b.one = random.chance(0.2);
        test.scale_a.memory = {{}, {random.integer(0, 2)}};
    } else if (test.scales == kBlockScales && random.chance(0.7)) {
        test.scale_a.memory = {{1, 0}, {0, random.integer(0, 3)}};
    }
}

// On Hopper's own kernel where the GPU has it, and on fp8_gemm_mma in some layout.
void run_on_both(Fp8GemmCase test, Random& random) {
    test.a_rows = whole_chunks(test.k);
    test.b_rows = whole_chunks(test.k);
    {
        Fp8GemmProblem problem(test, random);
        const Fp8GemmOnDevice device(problem);
        if (takes(problem.args(device.views()), kWgmma)) run_fp8_gemm(test, random, kWgmma);
    }
    test.trans_a = test.groups.empty() && random.chance(0.5);
    test.trans_b = random.chance(0.5);
    test.a_rows = whole_chunks(test.trans_a ? test.m : test.k);
    test.b_rows = whole_chunks(test.trans_b ? test.k : test.n);
    run_fp8_gemm(test, random, kMma);
}

Fp8GemmCase case_of(std::int64_t m, std::int64_t n, std::int64_t k, Fp8Scales scales) {
    Fp8GemmCase test;
    test.m = m;
    test.n = n;
    test.k = k;
    test.scales = scales;
    return test;
}

// Groups of up to `most` rows, of which some are empty; rows ahead and behind belong to none.
void divide(Fp8GemmCase& test, std::int64_t groups, std::int64_t most, Random& random) {
    test.rows_ahead = random.integer(0, 3);
    test.m = test.rows_ahead;
    for (std::int64_t group = 0; group < groups; ++group) {
        test.groups.push_back(random.chance(0.3) ? 0 : random.integer(1, most));
        test.m += test.groups.back();
    }
    test.m += random.integer(1, 4);
    test.alike = random.chance(0.3);
}

}  // namespace

TEST_CASE("fp8_gemm: scales of rows and columns, and of blocks, in every layout") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const Fp8Scales scales : {kSideScales, kBlockScales}) {
        for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 136, 130},
                                      {16, 4096, 1100},
                                      {70, 300, 1024},
                                      {129, 257, 640},
                                      {600, 1000, 528},
                                      {2100, 2050, 384}}) {
            Fp8GemmCase test = case_of(m, n, k, scales);
            lay_out_scales(test, random);
            if (m % 2 == 0) test.bias = DType::bf16;
            run_on_both(test, random);
            if (is_quick() && m > 20) break;
        }
    }
}

TEST_CASE("fp8_gemm: rows in groups, each with a matrix of its own") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const Fp8Scales scales : {kOneScale, kSideScales, kBlockScales}) {
        for (const auto& [groups, most, n, k] : {std::array<std::int64_t, 4>{3, 400, 520, 400},
                                                 {70, 9, 264, 272},
                                                 {8, 60, 1030, 1024}}) {
            Fp8GemmCase test = case_of(0, n, k, scales);
            divide(test, groups, most, random);
            test.scale_b.one = scales == kSideScales && random.chance(0.3);
            if (random.chance(0.6)) test.bias = DType::fp32;
            run_on_both(test, random);
            if (is_quick()) break;
        }
    }
}

TEST_CASE("fp8_gemm: random scales and groups") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    const int count = is_quick() ? 8 : 60;
    for (int i = 0; i < count; ++i) {
        const auto scales = static_cast<Fp8Scales>(random.integer(kOneScale, kBlockScales));
        Fp8GemmCase test =
            case_of(random.integer(1, 300), random.integer(1, 500), random.integer(1, 900), scales);
        test.fast_accum = random.chance(0.3);
        if (random.chance(0.4)) {
            divide(test, random.integer(1, 40), 50, random);
        } else {
            lay_out_scales(test, random);
        }
        if (random.chance(0.4)) test.bias = DType::bf16;
        test.out_rows = {random.integer(0, 9), random.integer(0, 9)};
        run_on_both(test, random);
    }
}

TEST_CASE("fp8_gemm with scales and groups under the sanitizer" *
          doctest::test_suite("sanitizer")) {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const Fp8Scales scales : {kSideScales, kBlockScales}) {
        for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{5, 72}, {300, 264}}) {
            Fp8GemmCase test = case_of(m, n, 400, scales);
            lay_out_scales(test, random);
            run_on_both(test, random);
        }
        Fp8GemmCase grouped = case_of(0, 136, 272, scales);
        divide(grouped, 5, 40, random);
        run_on_both(grouped, random);
    }
}

}  // namespace jitney::tests
