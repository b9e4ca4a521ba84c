// Every specialization of rotary_emb in covered.txt, on edge cases and on random problems.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "operations/check.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/made_params.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::emulator {
namespace {

using tests::Positions;
using tests::RotaryCase;
using tests::RotaryProblem;
using Spread = EmulatedTensor::Spread;

struct Tensors {
    Tensors(const RotaryProblem& problem, std::int64_t shift, Spread spread = Spread::near)
        : q(problem.q, EmulatedTensor::Use::input, shift, {}, spread),
          k(problem.k, EmulatedTensor::Use::input, shift, {}, spread),
          q_out(problem.q_out, EmulatedTensor::Use::output, shift, {}, spread),
          k_out(problem.k_out, EmulatedTensor::Use::output, shift, {}, spread),
          cos(problem.cos, EmulatedTensor::Use::input, 0, {}, spread),
          sin(problem.sin, EmulatedTensor::Use::input, 0, {}, spread) {
        if (problem.positions) {
            positions.emplace(*problem.positions, EmulatedTensor::Use::input, 0,
                              std::vector<bool>(), spread);
        }
    }

    EmulatedTensor q;
    EmulatedTensor k;
    EmulatedTensor q_out;
    EmulatedTensor k_out;
    EmulatedTensor cos;
    EmulatedTensor sin;
    std::optional<EmulatedTensor> positions;
};

void check_result(const EmulatedTensor& tensor, const tests::HostTensor& expected) {
    const tests::HostTensor actual = tensor.download();
    CHECK(actual.surroundings_intact());
    const tests::Comparison compared =
        tests::compare(actual, expected, tests::rotary_tolerance(expected.dtype()));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < 1e-3, compared.text);
}

// False where the policy runs the case as another specialization: nothing has run then.
bool launch_rotary(const policy::Spec& spec, const RotaryArgs& args, tests::Random& random) {
    const policy::RotaryProblem problem = checks::check(args);
    const policy::RotaryChoice choice =
        policy::rank_rotary(problem, policy::typical_facts(spec.arch())).choice.value();
    if (!(choice.spec == spec)) return false;
    RotaryParams params = make_params(args, problem, choice);
    launch_choice(choice.spec, choice.geometry, &params, random);
    return true;
}

bool run_rotary(const policy::Spec& spec, const RotaryCase& test, std::int64_t shift,
                tests::Random& random, Spread spread = Spread::near) {
    INFO(policy::text_of(spec), ": ", test.text(), ", shifted by ", shift, ", ", random.text());
    RotaryProblem problem(test, random);
    const Tensors tensors(problem, shift, spread);
    if (!launch_rotary(spec, tests::rotary_call<RotaryArgs>(test, tensors), random)) return false;
    problem.run_reference();
    check_result(tensors.q_out, problem.q_out);
    if (test.kv_heads > 0) check_result(tensors.k_out, problem.k_out);
    return true;
}

RotaryCase case_of(const policy::Spec& spec) {
    constexpr std::array dtypes = {DType::fp32, DType::fp16, DType::bf16};
    RotaryCase test;
    test.dtype = dtypes[static_cast<std::size_t>(policy::value_of(spec, "format"))];
    test.style = policy::value_of(spec, "style") == kInterleaved ? RotaryStyle::interleaved
                                                                 : RotaryStyle::half_split;
    return test;
}

int run_edges(const policy::Spec& spec, tests::Random& random) {
    int ran = 0;
    for (const auto& [head_dim, rotary_dim] :
         {std::pair{64, 64}, std::pair{128, 32}, std::pair{33, 14}, std::pair{2, 2}}) {
        for (const bool in_place : {false, true}) {
            RotaryCase test = case_of(spec);
            test.head_dim = head_dim;
            test.rotary_dim = rotary_dim;
            test.in_place = in_place;
            ran += run_rotary(spec, test, 0, random) ? 1 : 0;
            ran += run_rotary(spec, test, 1, random) ? 1 : 0;
        }
    }
    return ran;
}

// Rows, heads and positions so far apart that no 32 bits hold their distance.
void run_far(const policy::Spec& spec, tests::Random& random) {
    for (const Positions positions : {Positions::none, Positions::each_64}) {
        RotaryCase test = case_of(spec);
        test.batch = 2;
        test.length = 3;
        test.heads = 2;
        test.kv_heads = 2;
        test.head_dim = test.rotary_dim = 64;
        test.positions = positions;
        const std::int64_t shift = policy::value_of(spec, "pairs") == 1 ? 1 : 0;
        CHECK_MESSAGE(run_rotary(spec, test, shift, random, Spread::far),
                      "tensors far apart do not ask for this specialization");
    }
}

RotaryCase random_case(const policy::Spec& spec, tests::Random& random) {
    RotaryCase test = case_of(spec);
    test.batch = random.integer(1, 3);
    test.length = random.integer(1, 30);
    test.heads = random.integer(1, 5);
    test.kv_heads = random.integer(0, 3);
    const std::int64_t step = random.chance(0.7) ? 16 : 2;
    test.rotary_dim = step * random.integer(1, 96 / step);
    test.head_dim = test.rotary_dim + (random.chance(0.5) ? 0 : step * random.integer(1, 3));
    test.positions = static_cast<Positions>(random.integer(0, 4));
    test.in_place = random.chance(0.3);
    test.layout = tests::random_layout(random);
    test.table_padding = random.chance(0.3) ? random.integer(1, 4) : 0;
    return test;
}

}  // namespace

TEST_CASE("rotary_emb") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::rotary_emb)) {
        INFO(policy::text_of(covered.spec));
        CHECK_MESSAGE(run_edges(covered.spec, random) >= 2,
                      "the edge cases hardly ever ask for this specialization");
        run_far(covered.spec, random);
        const int wanted = problems_a_line(12);
        int ran = 0;
        for (int tries = 0; ran < wanted && tries < 100 * wanted; ++tries) {
            const RotaryCase test = random_case(covered.spec, random);
            const std::int64_t shift = random.chance(0.3) ? 1 : 0;
            ran += run_rotary(covered.spec, test, shift, random) ? 1 : 0;
        }
        CHECK_MESSAGE(ran == wanted, "random problems hardly ever ask for this specialization");
    }
}

TEST_CASE("rotary_emb: a position outside the table gives NaN") {
    tests::Random random(run_seed());
    constexpr double k32Bits = 4294967296.0;
    for (const Covered& covered : covered_lines(policy::KernelId::rotary_emb)) {
        for (const Positions positions : {Positions::shared_32, Positions::shared_64}) {
            RotaryCase test = case_of(covered.spec);
            test.positions = positions;
            test.kv_heads = 0;
            RotaryProblem problem(test, random);
            problem.positions->set(3, -1.0);
            problem.positions->set(5, static_cast<double>(RotaryProblem::rows));
            if (positions == Positions::shared_64) {  // in the table, were they cut to 32 bits
                problem.positions->set(3, k32Bits + 1.0);
                problem.positions->set(5, 1.0 - k32Bits);
            }
            const Tensors tensors(problem, 0);
            const auto args = tests::rotary_call<RotaryArgs>(test, tensors);
            if (!launch_rotary(covered.spec, args, random)) continue;
            const tests::HostTensor actual = tensors.q_out.download();
            for (std::int64_t row = 0; row < test.length; ++row)
                CHECK(std::isnan(actual.at({1, row, 2, 9})) == (row == 3 || row == 5));
        }
    }
}

}  // namespace jitney::emulator
