// Every specialization of the kernels of rows in covered.txt, on random rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "kernel_sources/norm/row_shape.h"
#include "operations/gated_activation/operation.hpp"
#include "operations/rms_norm/operation.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/row_problems.hpp"

namespace jitney::emulator {
namespace {

using tests::GateCase;
using tests::GateProblem;
using tests::HostTensor;
using tests::NormCase;
using tests::NormProblem;
using tests::RowCodes;
using Spread = EmulatedTensor::Spread;

using Placed = tests::PlacedTensors<EmulatedTensor>;

// A size whose rows this specialization takes; other calls of it go elsewhere.
std::int64_t size_of_rows(const policy::Spec& spec, tests::Random& random) {
    const std::int64_t threads = policy::value_of(spec, "threads");
    const std::int64_t held = policy::value_of(spec, "vectors");
    const std::int64_t width = policy::value_of(spec, "width");
    // Past what any tile holds, where nothing is held.
    const std::int64_t each = held != 0 ? held : 17;
    const std::int64_t fewer = threads > 32 ? threads - 32 : threads / 2;
    const std::int64_t vectors = random.integer(fewer * each + 1, threads * each);
    return vectors * width;
}

template <class Case>
void set_rows(Case& test, const policy::Spec& spec, tests::Random& random) {
    test.dtype = static_cast<DType>(policy::value_of(spec, "format"));
    test.codes = static_cast<RowCodes>(policy::value_of(spec, "result"));
    test.d = size_of_rows(spec, random);
    const int rows = rows_a_block(policy::value_of(spec, "threads"));
    test.rows = random.integer(1, 2 * rows + 1);
    test.gap = random.chance(0.5) ? 8 * random.integer(0, 2) : 0;
    if (policy::value_of(spec, "width") == 1) test.gap += random.integer(0, 7);
    test.in_place = random.chance(0.3);
}

// False where the policy chooses another specialization for such a call.
template <class Args, class Problem>
bool run_rows(const policy::Spec& spec, Problem& problem, std::int64_t shift, tests::Random& random,
              Spread spread) {
    using Op = OperationOf<Args>;
    INFO(policy::text_of(spec), ": ", problem.test.text(), ", shifted by ", shift, ", ",
         random.text());
    Placed placed(problem, [&](const HostTensor& host, bool written) {
        const auto use = written ? EmulatedTensor::Use::output : EmulatedTensor::Use::input;
        return EmulatedTensor(host, use, shift, {}, spread);
    });
    const Args args = problem.template call<Args>(placed.view());
    const auto seen = Op::check(args, checks::Data::present);
    const auto ranking = Op::rank(seen, policy::typical_facts(spec.arch()), std::nullopt);
    REQUIRE(ranking.choice);
    if (!(ranking.choice->spec == spec)) return false;
    auto params = Op::fill(args, seen, *ranking.choice);
    Op::set_addresses(params, args, *ranking.choice, {});
    launch_choice(spec, ranking.choice->geometry, params.of(0), random);
    tests::check_results_of(
        problem, placed,
        [](const char* name, const HostTensor& actual, const HostTensor& expected) {
            const std::string difference = tests::difference_of_rows(actual, expected);
            CHECK_MESSAGE(difference.empty(), name, ": ", difference);
        });
    return true;
}

template <class Args, class Problem, class Case, class Set>
void run_lines(policy::KernelId kernel, const Set& set) {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(kernel)) {
        const int wanted = problems_a_line(12);
        int ran = 0;
        for (int tries = 0; ran < wanted && tries < 20 * wanted; ++tries) {
            Case test;
            set_rows(test, covered.spec, random);
            set(test, covered.spec, random);
            const std::int64_t shift =
                policy::value_of(covered.spec, "width") == 1 ? random.integer(0, 1) : 0;
            // Now and then with rows so far apart that no 32 bits hold their distance.
            const Spread spread = ran % 3 == 2 ? Spread::far : Spread::near;
            Problem problem(test, random);
            ran += run_rows<Args>(covered.spec, problem, shift, random, spread) ? 1 : 0;
        }
        CHECK_MESSAGE(ran == wanted, policy::text_of(covered.spec),
                      ": random problems hardly ever ask for this specialization");
    }
}

}  // namespace

TEST_CASE("rms_norm") {
    run_lines<RmsNormArgs, NormProblem, NormCase>(
        policy::KernelId::rms_norm,
        [](NormCase& test, const policy::Spec& spec, tests::Random& random) {
            const int weight = policy::value_of(spec, "weight");
            test.weight.reset();
            if (weight != kNoWeight) test.weight = static_cast<DType>(weight);
            test.residual = policy::value_of(spec, "residual") != 0;
            test.subtract_mean = policy::value_of(spec, "center") != 0;
            test.bias = policy::value_of(spec, "bias") != 0;
            test.one_plus_weight = test.weight && random.chance(0.4);
        });
}

TEST_CASE("gated_activation") {
    run_lines<GatedActivationArgs, GateProblem, GateCase>(
        policy::KernelId::gated_activation,
        [](GateCase& test, const policy::Spec& spec, tests::Random& random) {
            test.activation = policy::value_of(spec, "activation");
            test.two = random.chance(0.5);
            // Rows of several pieces.
            if (policy::value_of(spec, "threads") == 256 && random.chance(0.5)) test.d *= 3;
        });
}

}  // namespace jitney::emulator
