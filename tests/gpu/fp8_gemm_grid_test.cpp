// fp8_gemm against the reference: sizes, layouts, formats, biases, outputs.
#include <doctest/doctest.h>

#include <array>

#include "tests/gpu/fp8_gemm_case.hpp"

namespace jitney::tests {
namespace {

constexpr std::array kFp8 = {DType::fp8_e4m3, DType::fp8_e5m2};
constexpr std::array kOutputs = {DType::bf16, DType::fp16, DType::fp32, DType::fp8_e4m3,
                                 DType::fp8_e5m2};

struct Size {
    std::int64_t m, n, k;
};

Fp8GemmCase case_of(const Size& size) {
    Fp8GemmCase test;
    test.m = size.m;
    test.n = size.n;
    test.k = size.k;
    return test;
}

}  // namespace

TEST_CASE("fp8_gemm: every m from 1 to 127, aligned and not") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    const std::int64_t step = is_quick() ? 9 : 1;
    for (std::int64_t m = 1; m <= 127; m += step) {
        run_fp8_gemm(case_of({m, 272, 512}), random);
        run_fp8_gemm(case_of({m, 255, 513}), random);
    }
}

TEST_CASE("fp8_gemm: sizes that are multiples of nothing") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const Size& size :
         {Size{33, 255, 513}, Size{16, 100, 200}, Size{17, 9, 33}, Size{19, 13, 37}, Size{1, 1, 1},
          Size{1, 4096, 4096}, Size{129, 127, 65}, Size{257, 130, 1040}, Size{300, 520, 77}}) {
        for (const bool trans_a : {false, true}) {
            for (const bool trans_b : {false, true}) {
                Fp8GemmCase test = case_of(size);
                test.trans_a = trans_a;
                test.trans_b = trans_b;
                test.bias = DType::fp32;
                run_fp8_gemm(test, random);
            }
        }
    }
}

TEST_CASE("fp8_gemm: four layouts, four pairs of formats, five outputs, three biases" *
          doctest::test_suite(kLong)) {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    // Each has tiles that lie beyond an edge.
    const std::array sizes = {Size{16, 96, 528}, Size{48, 80, 272}, Size{144, 208, 400}};
    std::size_t at = 0;
    for (const DType a : kFp8) {
        for (const DType b : kFp8) {
            for (const DType out : kOutputs) {
                for (int layout = 0; layout < 4; ++layout) {
                    ++at;
                    if (is_quick() && at % 7 != 0) continue;
                    Fp8GemmCase test = case_of(sizes[at % sizes.size()]);
                    test.a = a;
                    test.b = b;
                    test.out = out;
                    test.trans_a = layout % 2 != 0;
                    test.trans_b = layout / 2 != 0;
                    if (at % 3 == 1) test.bias = DType::bf16;
                    if (at % 3 == 2) test.bias = DType::fp32;
                    test.amax = size_of(out) == 1 && at % 2 == 0;
                    test.fast_accum = at % 5 == 0 && out != DType::fp32;
                    run_fp8_gemm(test, random);
                }
            }
        }
    }
}

TEST_CASE("fp8_gemm: bases and row strides at any byte") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const std::int64_t shift : {1, 2, 3, 4, 8, 15, 16}) {
        for (const std::int64_t padding : {0, 1, 7, 16}) {
            for (const bool trans_a : {false, true}) {
                Fp8GemmCase test = case_of({70, 90, 176});
                test.trans_a = trans_a;
                test.trans_b = !trans_a;
                test.a_rows = {shift, padding};
                test.b_rows = {16 - shift, padding};
                test.out_rows = {shift % 3, padding};
                test.out = padding == 7 ? DType::fp32 : DType::bf16;
                run_fp8_gemm(test, random);
            }
        }
    }
}

TEST_CASE("fp8_gemm: large products") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    for (const Size& size :
         {Size{1024, 1024, 1024}, Size{1000, 1536, 2064}, Size{128, 2048, 4096}}) {
        Fp8GemmCase test = case_of(size);
        test.bias = DType::bf16;
        run_fp8_gemm(test, random);
        if (is_quick()) return;
    }
}

TEST_CASE("fp8_gemm: random problems") {
    if (!has_fp8_tensor_cores()) return;
    Random random = Random::fresh();
    const int count = is_quick() ? 20 : 150;
    for (int i = 0; i < count; ++i) {
        Fp8GemmCase test =
            case_of({random.integer(1, 400), random.integer(1, 400), random.integer(0, 1500)});
        // Few kernels, so that most of the time is not the compiler's.
        test.out = random.chance(0.5) ? DType::bf16 : DType::fp8_e4m3;
        test.trans_a = random.chance(0.5);
        test.trans_b = random.chance(0.5);
        if (random.chance(0.5)) test.bias = random.chance(0.5) ? DType::bf16 : DType::fp32;
        test.amax = size_of(test.out) == 1 && random.chance(0.5);
        const auto rows = [&random] {
            const std::int64_t unit = random.chance(0.5) ? 16 : 1;
            return RowLayout{unit * random.integer(0, 3), unit * random.integer(0, 3)};
        };
        test.a_rows = rows();
        test.b_rows = rows();
        test.out_rows = rows();
        run_fp8_gemm(test, random);
    }
}

}  // namespace jitney::tests
