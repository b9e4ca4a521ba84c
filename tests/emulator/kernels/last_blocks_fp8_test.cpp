// The last blocks of the FP8 kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "kernel_sources/common/amax.h"
#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/column_sums_params.h"
#include "operations/check.hpp"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/reference.hpp"
#include "tests/emulator/kernels/last_blocks.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/fp8_gemm_problem.hpp"
#include "tests/support/fp8_quantize_problem.hpp"
#include "tests/support/made_params.hpp"

namespace jitney::emulator {

using Use = EmulatedTensor::Use;
using policy::KernelId;

// The last tile of so many, along M and N, that its number times the elements of a split's sums is
// beyond 32 bits.
TEST_CASE("the last blocks of fp8_gemm_mma") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(KernelId::fp8_gemm_mma)) {
        const policy::Spec& spec = covered.spec;
        if (policy::value_of(spec, "grouped") != 0)
            continue;  // rows are counted from their group's
        INFO(policy::text_of(spec), ", ", random.text());
        const std::int64_t tile_m = policy::value_of(spec, "tile_m");
        const std::int64_t tile_n = policy::value_of(spec, "tile_n");
        tests::Fp8GemmCase test;
        test.a = dtype_of(spec, "a");
        test.b = dtype_of(spec, "b");
        test.out = dtype_of(spec, "out");
        test.trans_a = policy::value_of(spec, "trans_a") != 0;
        test.trans_b = policy::value_of(spec, "trans_b") != 0;
        test.fast_accum = policy::value_of(spec, "promote") == 0;
        test.few_bits = policy::value_of(spec, "unpack") == 0;
        test.scales = static_cast<Fp8Scales>(policy::value_of(spec, "scales"));
        test.m = tile_m;  // whole chunks, where operands are transposed
        test.n = tile_n;
        test.k = 2 * fp8_gemm_tile_k(static_cast<int>(tile_m), static_cast<int>(tile_n)) + 16;
        test.bias = DType::fp32;
        tests::Fp8GemmProblem problem(test, random);
        const EmulatedTensor a(problem.a, Use::input, 0, {}, kAlone);
        const EmulatedTensor b(problem.b, Use::input, 0, {}, kAlone);
        const EmulatedTensor out(problem.out, Use::output, 0, {}, kAlone);
        const EmulatedTensor scale(problem.scale, Use::input);
        const EmulatedTensor bias(*problem.bias, Use::input, 0, {}, kAlone);
        tests::Fp8GemmTensors views{a.view(), b.view(), out.view(), scale.view(), bias.view(),
                                    {},       {},       {},         {},           {}};
        std::optional<EmulatedTensor> scale_a, scale_b;
        if (problem.scale_a) {
            scale_a.emplace(*problem.scale_a, Use::input, 0, std::vector<bool>(), kAlone);
            scale_b.emplace(*problem.scale_b, Use::input, 0, std::vector<bool>(), kAlone);
            views.scale_a = scale_a->view();
            views.scale_b = scale_b->view();
        }
        std::optional<EmulatedTensor> multiplier;
        if (problem.multiplier) {
            multiplier.emplace(*problem.multiplier, Use::input);
            views.multiplier = multiplier->view();
        }
        const Fp8GemmArgs args = problem.args(views);
        const policy::Fp8GemmProblem seen = checks::check(args);
        policy::Fp8GemmChoice choice = policy::place_fp8_gemm(spec, seen, 3, 1);
        choice.geometry.programmatic = true;
        REQUIRE(choice.splits == 3);
        const Buffer partials = lonely(choice.workspace.partial_bytes, "the partial sums");
        const Buffer counters = lonely(choice.workspace.counter_bytes, "the counters");
        std::memset(counters.data(), 0, counters.bytes());
        Fp8GemmParams params = make_params(args, seen, choice, partials.data(), counters.data());
        // Sums are counted by fours.
        const auto side = static_cast<std::int64_t>(std::ceil(
            std::sqrt(static_cast<double>(5 * kBeyond / (tile_m * tile_n * choice.splits)))));
        params.m_tiles = params.n_tiles = static_cast<int>(side);
        params.m = static_cast<int>((side - 1) * tile_m + test.m);
        params.n = static_cast<int>((side - 1) * tile_n + test.n);
        params.group = 1;
        const std::int64_t first_m = (side - 1) * tile_m;
        const std::int64_t first_n = (side - 1) * tile_n;
        const std::int64_t before = side * side - 1;  // tiles
        move_back(params.a.data, first_m * (test.trans_a ? 1 : params.a.stride));
        move_back(params.b.data, first_n * (test.trans_b ? params.b.stride : 1));
        move_back(params.out, first_m * params.out_stride + first_n, size_of(test.out));
        move_back(params.bias, first_n, 4);
        move_back(params.scales.a, first_m * params.scales.a_row, 4);
        move_back(params.scales.b,
                  (test.scales == kBlockScales ? first_n / kFp8ScaleBlock : first_n) *
                      params.scales.b_column,
                  4);
        move_back(params.partials, before * choice.splits * tile_m * tile_n);
        move_back(params.arrived, before);
        launch_last(spec, choice.geometry, before * choice.splits, &params, random);
        problem.run_reference();
        const std::string difference = problem.difference(out.download());
        CHECK_MESSAGE(difference.empty(), difference);
    }
}

// The last columns of so many that their number times that of a split is beyond 32 bits.
TEST_CASE("the last blocks of column_sums") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(KernelId::column_sums)) {
        INFO(policy::text_of(covered.spec), ", ", random.text());
        constexpr std::int64_t kSplits = 17;
        constexpr std::int64_t kBlocks = (kBeyond / (kSplits - 1)) / kColumnSumsCols + 1;
        constexpr std::int64_t kCols = 51;  // of the last block
        constexpr std::int64_t kBefore = (kBlocks - 1) * kColumnSumsCols;
        tests::HostTensor x(dtype_of(covered.spec, "format"), {5 * kSplits, kCols});
        x.fill_normal(random);
        tests::HostTensor out(dtype_of(covered.spec, "out"), {kCols});
        const EmulatedTensor device_x(x, Use::input, 0, {}, kAlone);
        const EmulatedTensor device_out(out, Use::output, 0, {}, kAlone);
        Intervals existing;
        for (std::int64_t split = 0; split < kSplits; ++split) {
            const auto first = static_cast<std::size_t>(split * (kBefore + kCols) + kBefore);
            existing.add(first * sizeof(float), (first + std::size_t{kCols}) * sizeof(float));
        }
        const Buffer parts(existing.runs().back().end, existing, "the parts");
        const Buffer counters = lonely(sizeof(unsigned), "the counters");
        *counters.as<unsigned>() = 0;
        policy::ColumnSumsProblem problem;
        problem.format = policy::value_of(covered.spec, "format");
        problem.out = policy::value_of(covered.spec, "out");
        problem.rows = x.shape()[0];
        problem.cols = static_cast<int>(kCols);
        policy::ColumnSumsChoice choice =
            policy::choose_column_sums(problem, policy::typical_facts(covered.spec.arch()));
        REQUIRE(choice.spec == covered.spec);
        ColumnSumsParams params{};
        params.x = device_x.view().data;
        params.out = device_out.view().data;
        params.x_stride = device_x.view().strides[0];
        params.rows = problem.rows;
        params.rows_a_split = 5;
        params.cols = static_cast<int>(kBefore + kCols);
        params.column_blocks = static_cast<int>(kBlocks);
        params.splits = static_cast<int>(kSplits);
        params.parts = parts.as<float>();
        params.arrived = counters.as<unsigned>();
        move_back(params.x, kBefore, size_of(x.dtype()));
        move_back(params.out, kBefore, size_of(out.dtype()));
        move_back(params.arrived, kBlocks - 1);
        choice.geometry.grid[0] = static_cast<unsigned>(kBlocks * kSplits);
        launch_choice(covered.spec, choice.geometry, &params, random,
                      {.only = blocks_from(kBlocks - 1, kSplits, kBlocks)});
        reference::column_sums(x.view(), out.view());
        JITNEY_CHECK_CLOSE(device_out.download(), out, (tests::Tolerance{1e-3, 1e-2}));
    }
}

// The last rows of more than 2^32.
TEST_CASE("the last blocks of fp8_quantize") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(KernelId::fp8_quantize)) {
        const policy::Spec& spec = covered.spec;
        INFO(policy::text_of(spec), ", ", random.text());
        const int codes = policy::value_of(spec, "codes");
        if (codes == kNoCodes) continue;  // shows nothing of one block
        tests::Fp8QuantizeCase test;
        test.dtype = dtype_of(spec, "format");
        test.out = dtype_of(spec, "out");
        test.amax = policy::value_of(spec, "amax") != 0;
        test.rows = (codes & kRowCodes) != 0;
        test.transposed = (codes & kTransposedCodes) != 0;
        test.shape = {50, 44};
        test.multiplier = 0.75;
        test.x_padding = test.out_padding = 4;
        tests::Fp8QuantizeProblem problem(test, random);
        const EmulatedTensor x(problem.x, Use::input, 0, {}, kAlone);
        const EmulatedTensor out(problem.out, Use::output, 0, {}, kAlone);
        const EmulatedTensor transposed(problem.out_transposed, Use::output, 0, {}, kAlone);
        const EmulatedTensor multiplier(problem.multiplier, Use::input);
        const EmulatedTensor others(problem.amax, Use::output);
        const Fp8QuantizeArgs args = problem.args([&](const tests::HostTensor& tensor) {
            if (&tensor == &problem.x) return x.view();
            if (&tensor == &problem.out) return out.view();
            if (&tensor == &problem.out_transposed) return transposed.view();
            return &tensor == &problem.multiplier ? multiplier.view() : others.view();
        });
        policy::Fp8QuantizeChoice choice =
            policy::choose_fp8_quantize(checks::check(args), policy::typical_facts(spec.arch()));
        choice.spec = spec;
        const Buffer counters(sizeof(AmaxCounters), "counters");
        *counters.as<AmaxCounters>() = {};
        Fp8Numbers numbers;
        numbers.multiplier = static_cast<const float*>(multiplier.view().data);
        Fp8QuantizeParams params = make_params(args, choice, numbers, counters.data());
        const std::int64_t tile_rows =
            std::int64_t{kFp8ThreadRows} * (kFp8QuantizeThreads >> choice.tiling.log2_across);
        const std::int64_t rows = kBeyond / tile_rows * tile_rows;
        const std::int64_t tiles = rows / tile_rows * choice.tiling.tiles_across;
        choice.geometry.grid[0] = static_cast<unsigned>(choice.tiling.tiles);
        params.rows += rows;
        params.tiles += static_cast<int>(tiles);
        move_back(params.x, rows * params.x_stride, size_of(test.dtype));
        move_back(params.codes, rows * params.codes_stride);
        move_back(params.transposed, rows);
        launch_last(spec, choice.geometry, tiles, &params, random);
        problem.run_reference();
        const auto same = [](const EmulatedTensor& actual, tests::HostTensor& expected) {
            const std::vector<std::byte> bits = actual.bits();
            return std::ranges::equal(bits, expected.storage());
        };
        if (test.rows) CHECK(same(out, problem.out));
        if (test.transposed) CHECK(same(transposed, problem.out_transposed));
    }
}

}  // namespace jitney::emulator
