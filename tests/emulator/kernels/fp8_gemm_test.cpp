// Every specialization of fp8_gemm_mma and fp8_gemm_wgmma in covered.txt, on edge cases and on
// random problems.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "core/arithmetic.hpp"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "operations/check.hpp"
#include "operations/fp8_gemm/choose.hpp"
#include "tests/emulator/kernels/emulated_driver.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/fp8_gemm_problem.hpp"
#include "tests/support/made_params.hpp"

namespace jitney::emulator {
namespace {

using tests::Fp8GemmCase;
using tests::Fp8GemmProblem;

// What a kernel may touch: nothing before the first element of a row.
std::vector<bool> behind_shift(const tests::HostTensor& tensor, std::int64_t shift) {
    std::vector<bool> usable(static_cast<std::size_t>(tensor.elements()));
    for (std::size_t i = 0; i < usable.size(); ++i)
        usable[i] = static_cast<std::int64_t>(i) % tensor.shape().back() >= shift;
    return usable;
}

struct Tensors {
    Tensors(const Fp8GemmProblem& problem, EmulatedTensor::Spread spread)
        : a(problem.a, EmulatedTensor::Use::input, 0,
            behind_shift(problem.a, problem.test.a_rows.shift), spread),
          b(problem.b, EmulatedTensor::Use::input, 0,
            behind_shift(problem.b, problem.test.b_rows.shift), spread),
          out(problem.out, EmulatedTensor::Use::output, 0,
              behind_shift(problem.out, problem.test.out_rows.shift), spread),
          scale(problem.scale, EmulatedTensor::Use::input) {
        if (problem.bias) bias.emplace(*problem.bias, EmulatedTensor::Use::input);
        if (problem.multiplier) multiplier.emplace(*problem.multiplier, EmulatedTensor::Use::input);
        if (problem.amax) amax.emplace(*problem.amax, EmulatedTensor::Use::output);
        if (problem.group_indptr)
            group_indptr.emplace(*problem.group_indptr, EmulatedTensor::Use::input);
        for (auto [from, to] :
             {std::pair(&problem.scale_a, &scale_a), std::pair(&problem.scale_b, &scale_b)}) {
            if (*from) {
                to->emplace(**from, EmulatedTensor::Use::input, 0, std::vector<bool>(), spread);
            }
        }
    }

    tests::Fp8GemmTensors views() const {
        return tests::views_of(*this, [](const EmulatedTensor& tensor) { return tensor.view(); });
    }

    EmulatedTensor a;
    EmulatedTensor b;
    EmulatedTensor out;
    EmulatedTensor scale;
    std::optional<EmulatedTensor> bias;
    std::optional<EmulatedTensor> multiplier;
    std::optional<EmulatedTensor> amax;
    std::optional<EmulatedTensor> scale_a;
    std::optional<EmulatedTensor> scale_b;
    std::optional<EmulatedTensor> group_indptr;
};

bool all_zero(const Buffer& buffer) {
    return std::all_of(buffer.data(), buffer.data() + buffer.bytes(),
                       [](std::byte byte) { return byte == std::byte{0}; });
}

bool is_wgmma(const policy::Spec& spec) {
    return spec.kernel == policy::KernelId::fp8_gemm_wgmma;
}

// Of K that a step of the kernel takes.
int tile_k_of(const policy::Spec& spec) {
    if (is_wgmma(spec)) return kFp8WgmmaTileK;
    return fp8_gemm_tile_k(policy::value_of(spec, "tile_m"), policy::value_of(spec, "tile_n"));
}

// What the kernel is launched with.
Fp8GemmLaunchParams params_of(const Fp8GemmArgs& args, const policy::Fp8GemmProblem& problem,
                              const policy::Fp8GemmChoice& choice, void* partials, void* counters) {
    use_emulated_driver();
    Fp8GemmLaunchParams params = form_launch(args, problem, choice);
    set_addresses(params, args, choice, partials, counters);
    return params;
}

// The choice that the policy would make of `test` were the tile that of `spec`: small problems ask
// for small tiles, and it is tiles that lie beyond the output which are of interest here.
policy::Fp8GemmChoice choice_of(const policy::Spec& spec, const policy::Fp8GemmProblem& problem,
                                int splits) {
    if (is_wgmma(spec)) {
        policy::DeviceFacts facts = policy::typical_facts(spec.arch());
        facts.sm_count = 3;  // blocks stay, and take several tiles
        return policy::place_fp8_gemm_wgmma(spec, problem, facts);
    }
    policy::Fp8GemmChoice choice = policy::place_fp8_gemm(spec, problem, splits, 2);
    choice.geometry.programmatic = true;  // where the policy would not, the wait does no harm
    return choice;
}

// One GEMM in the emulator's memory, with what its splits leave to each other.
void run(const policy::Spec& spec, Fp8GemmProblem& problem, int splits, tests::Random& random,
         EmulatedTensor::Spread spread = EmulatedTensor::Spread::near) {
    INFO(policy::text_of(spec), ": ", problem.test.text(), ", splits ", splits, ", ",
         random.text());
    if (!problem.test.groups.empty()) splits = 1;
    const Tensors tensors(problem, spread);
    const Fp8GemmArgs args = problem.args(tensors.views());
    const policy::Fp8GemmProblem seen = checks::check(args);
    REQUIRE((seen.aligned || (!is_wgmma(spec) && policy::value_of(spec, "unaligned") != 0)));
    const policy::Fp8GemmChoice choice = choice_of(spec, seen, splits);
    const Buffer partials(choice.workspace.partial_bytes, "the partial sums");
    const Buffer counters(choice.workspace.counter_bytes, "the counters");
    std::memset(counters.data(), 0, counters.bytes());
    Fp8GemmLaunchParams params = params_of(args, seen, choice, partials.data(), counters.data());
    const auto launch = [&](BlockOrder order) {
        launch_choice(spec, choice.geometry, params.of(0), random, {.order = order});
    };
    launch(BlockOrder::shuffled);
    if (splits > 2) check_any_order(launch, [&] { return tensors.out.bits(); });
    problem.run_reference();
    const std::string difference = problem.difference(tensors.out.download());
    CHECK_MESSAGE(difference.empty(), difference);
    if (problem.amax) {
        const double expected = problem.amax->get(0);
        const double relative = problem.test.few_bits ? 1e-2 : 1e-3;
        CHECK(std::abs(tensors.amax->download().get(0) - expected) <= relative * expected);
    }
    CHECK(all_zero(counters));
}

// Divides the rows among groups: one that ends in a tile of its own, an empty one, and the rest,
// or any; the first row and the last may belong to none.
void divide(Fp8GemmCase& test, const policy::Spec& spec, tests::Random& random) {
    if (policy::value_of(spec, "grouped") == 0) return;
    test.groups = {std::min<std::int64_t>(test.m, policy::value_of(spec, "tile_m") + 1), 0};
    std::int64_t left = test.m - test.groups.front();
    if (random.chance(0.5)) {
        test.rows_ahead = std::min<std::int64_t>(left, 2);
        left -= test.rows_ahead;
    }
    const std::int64_t most = random.chance(0.3) ? 70 : 5;  // past 32, which a warp sees at a time
    while (left > 0 && static_cast<std::int64_t>(test.groups.size()) < most) {
        test.groups.push_back(
            random.chance(0.3) ? 0 : random.integer(1, std::max<std::int64_t>(left / 2, 1)));
        left -= test.groups.back();
    }
    test.alike = random.chance(0.3);
}

void run(const policy::Spec& spec, Fp8GemmCase test, int splits, tests::Random& random) {
    divide(test, spec, random);
    Fp8GemmProblem problem(test, random);
    run(spec, problem, splits, random);
}

Fp8GemmCase case_of(const policy::Spec& spec) {
    const auto value = [&](const char* name) { return policy::value_of(spec, name); };
    Fp8GemmCase test;
    test.a = static_cast<DType>(value("a"));
    test.b = static_cast<DType>(value("b"));
    test.out = static_cast<DType>(value("out"));
    test.fast_accum = value("promote") == 0;
    test.few_bits = true;
    test.scales = static_cast<Fp8Scales>(value("scales"));
    if (value("grouped") != 0) test.groups = {1};
    // Rows and columns of blocks in the other order in memory, or with gaps.
    if (test.scales == kSideScales) test.scale_a.memory.padding = {2};
    if (test.scales == kBlockScales) test.scale_a.memory = {{1, 0}, {0, 3}};
    if (is_wgmma(spec)) return test;
    test.trans_a = value("trans_a") != 0;
    test.trans_b = value("trans_b") != 0;
    test.few_bits = value("unpack") == 0;
    return test;
}

// Whether there is a part of K for each split.
bool takes(const policy::Spec& spec, std::int64_t k) {
    if (!is_wgmma(spec)) return true;
    const std::int64_t splits = policy::value_of(spec, "splits");
    const std::int64_t tiles = ceil_div(k, kFp8WgmmaTileK);
    return tiles > 0 && (splits - 1) * ceil_div(tiles, splits) < tiles;
}

bool is_aligned(const policy::Spec& spec) {
    return is_wgmma(spec) || policy::value_of(spec, "unaligned") == 0;
}

// Rows that begin at multiples of 16 bytes.
std::int64_t whole_chunks(std::int64_t bytes) {
    return (bytes + 15) / 16 * 16;
}

void align(const policy::Spec& spec, Fp8GemmCase& test) {
    test.a_rows.shift = whole_chunks(test.a_rows.shift);
    test.b_rows.shift = whole_chunks(test.b_rows.shift);
    const std::int64_t a_columns = test.a_rows.shift + (test.trans_a ? test.m : test.k);
    const std::int64_t b_columns = test.b_rows.shift + (test.trans_b ? test.k : test.n);
    test.a_rows.padding = whole_chunks(a_columns + test.a_rows.padding) - a_columns;
    test.b_rows.padding = whole_chunks(b_columns + test.b_rows.padding) - b_columns;
    // The copy engine writes such rows of the output alone.
    if (!is_wgmma(spec) || policy::value_of(spec, "pieces") == 0) return;
    test.out_rows.shift = whole_chunks(test.out_rows.shift);
    const std::int64_t columns = test.out_rows.shift + test.n;
    test.out_rows.padding = whole_chunks(columns + test.out_rows.padding) - columns;
}

void run_edges(const policy::Spec& spec, tests::Random& random) {
    struct Size {
        std::int64_t m, n, k;
        int splits;
    };
    const std::int64_t tile_m = policy::value_of(spec, "tile_m");
    const std::int64_t tile_n = policy::value_of(spec, "tile_n");
    const std::int64_t tile_k = tile_k_of(spec);
    for (const Size& size :
         // A strip of tiles along M that is not full, with several tiles along N, and tails of
         // both.
         {Size{2 * tile_m + 1, tile_n + 17, 16, 1}, Size{tile_m + 3, 2 * tile_n + 1, tile_k + 5, 2},
          Size{17, 17, 3 * tile_k, 1}, Size{3, tile_n + 9, tile_k + 5, 2}, Size{1, 1, 1, 1},
          Size{tile_m, 16, 6 * tile_k + 16, 3}, Size{5, 16, 0, 1}}) {
        Fp8GemmCase test = case_of(spec);
        test.m = size.m;
        test.n = size.n;
        test.k = size.k;
        if (!takes(spec, test.k)) continue;
        if (test.k == 0) test.scale = std::numeric_limits<double>::infinity();
        test.bias = DType::bf16;
        test.amax = test.out == DType::fp8_e4m3 || test.out == DType::fp8_e5m2;
        if (is_aligned(spec)) {
            align(spec, test);
        } else {
            // Whole chunks end where a row does, and within a word.
            test.a_rows = {1, 7};
            test.b_rows = {3, 9};
        }
        run(spec, test, size.splits, random);
    }
}

// In the rows past the last of a tile stands the bias alone, which is larger here than what it is
// added to leaves.
void run_amax(const policy::Spec& spec, tests::Random& random) {
    Fp8GemmCase test = case_of(spec);
    if (test.out != DType::fp8_e4m3 && test.out != DType::fp8_e5m2) return;
    test.m = 5;
    test.n = 16;
    test.k = 16;
    test.bias = DType::fp32;
    test.amax = true;
    if (is_aligned(spec)) align(spec, test);
    Fp8GemmProblem problem(test, random);
    for (tests::HostTensor* operand : {&problem.a, &problem.b})
        operand->fill([](std::int64_t) { return 1.0; });
    problem.bias->fill([](std::int64_t) { return -6.0; });  // 16 * 0.37 is 5.92
    if (problem.scale_a) {
        problem.scale_a->fill([](std::int64_t) { return 0.37; });
        problem.scale_b->fill([](std::int64_t) { return 1.0; });
    }
    run(spec, problem, 1, random);
}

// Gives each element of the operands the value that its place along K has.
template <class A, class B>
void fill_along_k(Fp8GemmProblem& problem, const A& a, const B& b) {
    const auto fill = [](tests::HostTensor& operand, bool along_columns, std::int64_t shift,
                         const auto& value) {
        const std::int64_t columns = operand.shape().back();
        operand.fill([&](std::int64_t i) {
            return value(along_columns ? i % columns - shift : i / columns);
        });
    };
    fill(problem.a, !problem.test.trans_a, problem.test.a_rows.shift, a);
    fill(problem.b, problem.test.trans_b, problem.test.b_rows.shift, b);
}

// The sums of the first two of three splits cancel each other, and that of the third is less than
// the last bit of either: it is there in the result if they are added in their order, and lost if
// whichever arrives last is added first.
void run_order(const policy::Spec& spec, tests::Random& random) {
    if (policy::value_of(spec, "grouped") != 0) return;  // whose K is not divided
    const std::int64_t tile_k = tile_k_of(spec);
    Fp8GemmCase test = case_of(spec);
    test.m = 5;
    test.n = 16;
    test.k = 3 * tile_k;
    test.scale = 1.0;
    if (is_aligned(spec)) align(spec, test);
    Fp8GemmProblem problem(test, random);
    fill_along_k(
        problem, [&](std::int64_t k) { return k < 2 * tile_k ? 256.0 : 1.0; },
        [&](std::int64_t k) {
            if (k < 2 * tile_k) return k < tile_k ? 256.0 : -256.0;
            return k == 2 * tile_k ? 0x1p-4 : 0.0;
        });
    if (problem.multiplier) problem.multiplier->fill([](std::int64_t) { return 1.0; });
    run(spec, problem, 3, random);
}

// Sums are promoted every 128 of K at the latest. Numbers that 14 bits hold exactly for as long as
// that, and no longer: what is added to them later, or to sums that were not promoted, is rounded.
// A bias takes away all but a few units of what is exact, so that every format shows it.
void run_promotion(const policy::Spec& spec, tests::Random& random) {
    if (policy::value_of(spec, "promote") == 0) return;
    const int tile_k = tile_k_of(spec);
    const int warps = is_wgmma(spec) ? 1
                                     : fp8_gemm_warps(policy::value_of(spec, "tile_m"),
                                                      policy::value_of(spec, "tile_n"), false)
                                           .k;
    const int chain = tile_k / 32 / warps;  // products of 32
    REQUIRE(32 * chain <= 128);
    const double unit = 0x1p-4;
    const double large = 512.0 / chain;  // units; 31 of them and one more a product of 32
    Fp8GemmCase test = case_of(spec);
    test.m = 5;
    test.n = 16;
    test.k = 8 * tile_k;
    test.scale = 1.0;
    if (!test.groups.empty()) test.groups = {test.m};
    test.bias = DType::fp32;
    if (is_aligned(spec)) align(spec, test);
    Fp8GemmProblem problem(test, random);
    fill_along_k(
        problem, [](std::int64_t) { return 1.0; },
        [&](std::int64_t k) { return (k % 32 == 7 ? 1.0 : large) * unit; });
    const double products = static_cast<double>(test.k / 32);
    const double sum = products * (31.0 * large + 1.0);
    problem.bias->fill([&](std::int64_t) { return (5.0 - sum) * unit; });
    if (problem.multiplier) problem.multiplier->fill([](std::int64_t) { return 16.0; });
    for (auto* scales : {&problem.scale_a, &problem.scale_b}) {
        if (*scales) (*scales)->fill([](std::int64_t) { return 1.0; });
    }

    const Tensors tensors(problem, EmulatedTensor::Spread::near);
    const Fp8GemmArgs args = problem.args(tensors.views());
    const policy::Fp8GemmProblem seen = checks::check(args);
    const policy::Fp8GemmChoice choice = choice_of(spec, seen, 1);
    Fp8GemmLaunchParams params = params_of(args, seen, choice, nullptr, nullptr);
    launch_choice(spec, choice.geometry, params.of(0), random);
    const tests::HostTensor out = tensors.out.download();
    const double expected = 5.0 * unit * (problem.multiplier ? 16.0 : 1.0);
    for (std::int64_t row = 0; row < test.m; ++row) {
        for (std::int64_t column = 0; column < test.n; ++column)
            REQUIRE(out.at({row, test.out_rows.shift + column}) == expected);
    }
}

// Rows of the operands and of the output so far apart that no 32 bits hold their distance.
void run_far(const policy::Spec& spec, tests::Random& random) {
    Fp8GemmCase test = case_of(spec);
    test.m = 19;
    test.n = 21;
    test.k = 70;
    for (const int splits : {1, 2}) {
        Fp8GemmProblem problem(test, random);
        run(spec, problem, splits, random, EmulatedTensor::Spread::far);
    }
}

Fp8GemmCase random_case(const policy::Spec& spec, tests::Random& random) {
    Fp8GemmCase test = case_of(spec);
    test.m = random.integer(1, 2 * policy::value_of(spec, "tile_m"));
    test.n = random.integer(1, 2 * policy::value_of(spec, "tile_n"));
    test.k = random.integer(0, 5 * tile_k_of(spec));
    if (test.scales == kSideScales) {
        test.scale_a.one = random.chance(0.3);
        test.scale_b.one = random.chance(0.3);
    }
    if (test.scales == kBlockScales) {
        if (random.chance(0.5)) test.scale_a.memory = {};
        if (random.chance(0.5)) test.scale_b.memory = {{1, 0}, {1, 0}};
    }
    if (random.chance(0.6)) test.bias = random.chance(0.5) ? DType::bf16 : DType::fp32;
    const bool fp8 = test.out == DType::fp8_e4m3 || test.out == DType::fp8_e5m2;
    test.amax = fp8 && random.chance(0.7);
    const auto rows = [&random] {
        return random.chance(0.5) ? tests::RowLayout{random.integer(0, 20), random.integer(0, 20)}
                                  : tests::RowLayout{};
    };
    test.a_rows = rows();
    test.b_rows = rows();
    test.out_rows = rows();
    if (is_aligned(spec)) align(spec, test);
    return test;
}

}  // namespace

TEST_CASE("fp8_gemm_mma") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_gemm_mma)) {
        INFO(policy::text_of(covered.spec));
        run_edges(covered.spec, random);
        run_amax(covered.spec, random);
        run_promotion(covered.spec, random);
        run_order(covered.spec, random);
        run_far(covered.spec, random);
        const int wanted = problems_a_line(3);
        for (int i = 0; i < wanted; ++i) {
            const Fp8GemmCase test = random_case(covered.spec, random);
            run(covered.spec, test, static_cast<int>(random.integer(1, 3)), random);
        }
    }
}

TEST_CASE("fp8_gemm_wgmma") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_gemm_wgmma)) {
        INFO(policy::text_of(covered.spec));
        const int splits = policy::value_of(covered.spec, "splits");
        run_edges(covered.spec, random);
        if (splits == 1) {
            run_amax(covered.spec, random);
            run_promotion(covered.spec, random);
        }
        const int wanted = problems_a_line(3);
        for (int i = 0; i < wanted; ++i) {
            Fp8GemmCase test = random_case(covered.spec, random);
            while (!takes(covered.spec, test.k))
                test = random_case(covered.spec, random);
            run(covered.spec, test, splits, random);
        }
    }
}

}  // namespace jitney::emulator
