// Every specialization of attn_merge_states in covered.txt, on random partial results.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "operations/check.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/made_params.hpp"
#include "tests/support/merge_problem.hpp"

namespace jitney::emulator {
namespace {

using tests::MergeCase;
using tests::MergeProblem;
using Use = EmulatedTensor::Use;
using Spread = EmulatedTensor::Spread;

struct Tensors {
    Tensors(const MergeProblem& problem, std::int64_t shift, Spread spread = Spread::near)
        : out(problem.out, Use::output, shift, {}, spread),
          lse(problem.lse, Use::output, 0, {}, spread) {
        for (std::size_t i = 0; i < problem.part_outs.size(); ++i) {
            const Use use = problem.test.in_place && i == 0 ? Use::output : Use::input;
            part_outs.emplace_back(problem.part_outs[i], use, shift, std::vector<bool>(), spread);
            part_lses.emplace_back(problem.part_lses[i], use, 0, std::vector<bool>(), spread);
            parts.push_back({part_outs.back().view(), part_lses.back().view()});
        }
    }

    MergeStatesArgs args(const MergeCase& test) const {
        MergeStatesArgs args;
        args.parts = parts;
        args.out = test.in_place ? MergeProblem::first_of(parts[0].out, test) : out.view();
        if (test.lse) {
            args.lse = test.in_place ? MergeProblem::first_of(parts[0].lse, test) : lse.view();
        }
        return args;
    }

    std::vector<EmulatedTensor> part_outs;
    std::vector<EmulatedTensor> part_lses;
    std::vector<PartialState> parts;
    EmulatedTensor out;
    EmulatedTensor lse;
};

// What the first part of a tensor holds, in the layout of `like`.
tests::HostTensor first_part(const EmulatedTensor& tensor, const tests::HostTensor& like) {
    const tests::HostTensor all = tensor.download();
    tests::HostTensor first(like.dtype(), like.shape());
    first.fill([&](std::int64_t i) { return all.get(i); });
    return first;
}

void check_close(const tests::HostTensor& actual, const tests::HostTensor& expected,
                 tests::Tolerance tolerance) {
    CHECK(actual.surroundings_intact());
    const tests::Comparison compared = tests::compare(actual, expected, tolerance);
    CHECK_MESSAGE(compared.within, compared.text);
}

bool run_merge(const policy::Spec& spec, const MergeCase& test, std::int64_t shift,
               tests::Random& random, Spread spread) {
    INFO(policy::text_of(spec), ": ", test.text(), ", shifted by ", shift, ", ", random.text());
    MergeProblem problem(test, random);
    const Tensors tensors(problem, shift, spread);
    const MergeStatesArgs args = tensors.args(test);
    const policy::MergeStatesProblem seen = checks::check(args);
    const policy::MergeStatesChoice choice =
        policy::rank_merge_states(seen, policy::typical_facts(spec.arch())).choice.value();
    if (!(choice.spec == spec)) return false;
    MergeStatesParams params = make_params(args, seen);
    launch_choice(choice.spec, choice.geometry, &params, random);
    problem.run_reference();
    check_close(
        test.in_place ? first_part(tensors.part_outs[0], problem.out) : tensors.out.download(),
        problem.out, tests::merge_tolerance(test.dtype));
    if (!test.lse) return true;
    check_close(
        test.in_place ? first_part(tensors.part_lses[0], problem.lse) : tensors.lse.download(),
        problem.lse, {1e-5, 1e-5});
    return true;
}

// False where the policy chooses another specialization for such a call.
bool launched(const Covered& covered, const MergeStatesArgs& args, tests::Random& random) {
    const policy::MergeStatesProblem seen = checks::check(args);
    const policy::MergeStatesChoice choice =
        policy::rank_merge_states(seen, policy::typical_facts(covered.spec.arch())).choice.value();
    if (!(choice.spec == covered.spec)) return false;
    MergeStatesParams params = make_params(args, seen);
    launch_choice(choice.spec, choice.geometry, &params, random);
    return true;
}

}  // namespace

TEST_CASE("attn_merge_states") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::attn_merge_states)) {
        const int wanted = problems_a_line(25);
        int ran = 0;
        for (int tries = 0; ran < wanted && tries < 20 * wanted; ++tries) {
            MergeCase test = tests::random_merge_case(random);
            test.dtype = static_cast<DType>(policy::value_of(covered.spec, "format"));
            test.head_dim = policy::value_of(covered.spec, "head_dim");
            const std::int64_t shift = random.chance(0.3) ? 1 : 0;
            // Now and then with rows so far apart that no 32 bits hold their distance.
            const Spread spread = ran % 3 == 2 ? Spread::far : Spread::near;
            ran += run_merge(covered.spec, test, shift, random, spread) ? 1 : 0;
        }
        CHECK_MESSAGE(ran == wanted, policy::text_of(covered.spec),
                      ": random problems hardly ever ask for this specialization");
    }
}

TEST_CASE("attn_merge_states: nothing seen anywhere stays nothing") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::attn_merge_states)) {
        MergeCase test;
        test.dtype = static_cast<DType>(policy::value_of(covered.spec, "format"));
        test.head_dim = policy::value_of(covered.spec, "head_dim");
        MergeProblem problem(test, random);
        for (tests::HostTensor& lse : problem.part_lses)
            lse.fill([](std::int64_t) { return -std::numeric_limits<double>::infinity(); });
        for (tests::HostTensor& out : problem.part_outs)
            out.poison();
        const Tensors tensors(problem, 0);
        if (!launched(covered, tensors.args(test), random)) continue;
        const tests::HostTensor out = tensors.out.download();
        const tests::HostTensor lse = tensors.lse.download();
        for (std::int64_t i = 0; i < out.elements(); ++i)
            REQUIRE(out.get(i) == 0.0);
        for (std::int64_t i = 0; i < lse.elements(); ++i)
            REQUIRE(lse.get(i) == -std::numeric_limits<double>::infinity());
    }
}

// Of one row each, beside a part that is in order; more parts than a warp asks for at a time.
TEST_CASE("attn_merge_states: an LSE of +inf or NaN makes its row NaN, and no other") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::attn_merge_states)) {
        for (const std::int64_t more : {0, 40}) {
            MergeCase test;
            test.dtype = static_cast<DType>(policy::value_of(covered.spec, "format"));
            test.head_dim = policy::value_of(covered.spec, "head_dim");
            test.parts = {0, more};
            MergeProblem problem(test, random);
            problem.part_lses[0].set(0, infinity);
            problem.part_lses[0].set(1, std::nan(""));
            const Tensors tensors(problem, 0);
            if (!launched(covered, tensors.args(test), random)) continue;
            problem.run_reference();
            const tests::HostTensor out = tensors.out.download();
            const tests::HostTensor lse = tensors.lse.download();
            for (std::int64_t i = 0; i < lse.elements(); ++i) {
                REQUIRE(std::isnan(lse.get(i)) == (i < 2));
                REQUIRE(std::isnan(problem.lse.get(i)) == (i < 2));
            }
            for (std::int64_t i = 0; i < out.elements(); ++i)
                REQUIRE(std::isnan(out.get(i)) == std::isnan(problem.out.get(i)));
            REQUIRE(std::isnan(out.get(0)));
        }
    }
}

}  // namespace jitney::emulator
