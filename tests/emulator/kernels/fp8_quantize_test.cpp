// Every specialization of fp8_quantize in covered.txt, on edge cases, on random problems, and on
// all 16-bit numbers. Codes and amax must be the reference's bit for bit.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernel_sources/common/amax.h"
#include "kernel_sources/common/constants.h"
#include "operations/check.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/fp8_quantize_problem.hpp"
#include "tests/support/made_params.hpp"

namespace jitney::emulator {
namespace {

using tests::Fp8QuantizeCase;
using tests::Fp8QuantizeProblem;
using Spread = EmulatedTensor::Spread;

int constant(const policy::Spec& spec, const char* name) {
    return policy::value_of(spec, name);
}

// A launch of `spec`, on tensors `shift` elements from where they would be aligned. Afterwards the
// problem has what the device has.
class Launch {
  public:
    Launch(Fp8QuantizeProblem& problem, std::int64_t shift, Spread spread)
        : problem_(problem),
          x_(problem.x, EmulatedTensor::Use::input, shift, {}, spread),
          out_(problem.out, EmulatedTensor::Use::output, shift, {}, spread),
          transposed_(problem.out_transposed, EmulatedTensor::Use::output, shift, {}, spread),
          multiplier_(problem.multiplier, problem.test.dynamic ? EmulatedTensor::Use::output
                                                               : EmulatedTensor::Use::input),
          scale_(problem.scale, EmulatedTensor::Use::output),
          amax_(problem.amax, EmulatedTensor::Use::output),
          // A state that has a history is read alone.
          state_(problem.state, problem.test.state == 0.0 ? EmulatedTensor::Use::output
                                                          : EmulatedTensor::Use::input),
          counters_(sizeof(AmaxCounters), "counters") {
        *counters_.as<AmaxCounters>() = {};
    }

    // The pass over x that has these codes; twice, and the counters must be zero again.
    // False where the policy runs it as another specialization, and nothing has run then.
    bool run(const policy::Spec& spec, tests::Random& random) {
        const Fp8QuantizeArgs call = args();
        policy::DeviceFacts facts = policy::typical_facts(spec.arch());
        facts.sm_count = 1;  // several tiles a block
        policy::Fp8QuantizeProblem pass = checks::check(call);
        if (constant(spec, "codes") == kNoCodes) pass = policy::amax_of(pass);
        policy::Fp8QuantizeChoice choice = policy::choose_fp8_quantize(pass, facts);
        if (pass.amax) choice.geometry.grid[0] = std::min(choice.geometry.grid[0], 3u);
        policy::Spec hardware = spec;
        hardware.values[4] = choice.spec.values[4];
        if (!(choice.spec == hardware)) return false;
        const auto number = [](const EmulatedTensor& tensor) {
            return static_cast<float*>(tensor.view().data);
        };
        const Fp8QuantizeCase& test = problem_.test;
        Fp8Numbers numbers;
        if (test.state) {
            numbers.multiplier = numbers.state = number(state_);
        } else if (test.dynamic) {
            numbers.new_multiplier = number(multiplier_);
        } else if (test.multiplier) {
            numbers.multiplier = number(multiplier_);
        }
        if (test.scale) numbers.scale = number(scale_);
        if (test.amax) numbers.amax = number(amax_);
        for (int i = 0; i < 2; ++i) {
            Fp8QuantizeParams params = make_params(call, choice, numbers, counters_.data());
            // As behind a pass for amax.
            if (!pass.amax) params.backwards = static_cast<int>(random.integer(0, 1));
            launch_choice(spec, choice.geometry, &params, random);
        }
        CHECK(counters_.as<AmaxCounters>()->largest == 0);
        CHECK(counters_.as<AmaxCounters>()->arrived == 0);
        problem_.out = out_.download();
        problem_.out_transposed = transposed_.download();
        problem_.multiplier = multiplier_.download();
        problem_.scale = scale_.download();
        problem_.amax = amax_.download();
        problem_.state = state_.download();
        return true;
    }

  private:
    Fp8QuantizeArgs args() const {
        return problem_.args([this](const tests::HostTensor& tensor) { return view_of(tensor); });
    }
    Tensor view_of(const tests::HostTensor& tensor) const {
        if (&tensor == &problem_.x) return x_.view();
        if (&tensor == &problem_.out) return out_.view();
        if (&tensor == &problem_.out_transposed) return transposed_.view();
        if (&tensor == &problem_.multiplier) return multiplier_.view();
        return &tensor == &problem_.scale ? scale_.view() : amax_.view();
    }

    Fp8QuantizeProblem& problem_;
    EmulatedTensor x_;
    EmulatedTensor out_;
    EmulatedTensor transposed_;
    EmulatedTensor multiplier_;
    EmulatedTensor scale_;
    EmulatedTensor amax_;
    EmulatedTensor state_;
    Buffer counters_;
};

bool run_problem(const policy::Spec& spec, Fp8QuantizeProblem problem, std::int64_t shift,
                 tests::Random& random, Spread spread = Spread::near) {
    INFO(policy::text_of(spec), ": ", problem.test.text(), ", shifted by ", shift, ", ",
         random.text());
    Fp8QuantizeProblem expected = problem;
    if (!Launch(problem, shift, spread).run(spec, random)) return false;
    expected.run_reference();
    if (problem.test.dynamic) {  // the other pass has the codes
        expected.out = problem.out;
        expected.out_transposed = problem.out_transposed;
    }
    const std::string difference = problem.difference(expected);
    CHECK_MESSAGE(difference.empty(), difference);
    return true;
}

Fp8QuantizeCase case_of(const policy::Spec& spec) {
    constexpr std::array dtypes = {DType::fp32, DType::fp16, DType::bf16, DType::fp8_e4m3,
                                   DType::fp8_e5m2};
    const auto dtype = [&](const char* name) {
        return dtypes[static_cast<std::size_t>(constant(spec, name))];
    };
    const int codes = constant(spec, "codes");
    Fp8QuantizeCase test;
    test.dtype = dtype("format");
    test.out = dtype("out");
    test.amax = constant(spec, "amax") != 0;
    test.rows = (codes & kRowCodes) != 0;
    test.transposed = (codes & kTransposedCodes) != 0;
    if (codes == kNoCodes) test.multiplier.reset();
    return test;
}

void run_edges(const policy::Spec& spec, tests::Random& random) {
    const std::vector<std::vector<std::int64_t>> shapes = {
        {1, 16}, {16, 1}, {5, 4, 3, 160}, {1, 3221}, {233, 1}, {148, 67}, {130, 264}, {1, 1}};
    for (const auto& shape : shapes) {
        Fp8QuantizeCase test = case_of(spec);
        test.shape = shape;
        if (test.multiplier) test.multiplier = 0.75;
        test.scale = test.multiplier.has_value();
        CHECK(run_problem(spec, Fp8QuantizeProblem(test, random), 0, random));
        CHECK(run_problem(spec, Fp8QuantizeProblem(test, random), 1, random));
        test.x_padding = 8;
        test.out_padding = 16;
        test.transposed_padding = (16 - test.row_count() % 16) % 16;
        if (shape.size() == 2) {
            CHECK(run_problem(spec, Fp8QuantizeProblem(test, random), 0, random));
        }
    }
}

// Rows of everything so far apart that no 32 bits hold their distance.
void run_far(const policy::Spec& spec, tests::Random& random) {
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{130, 72}, {3, 3}, {2, 300}}) {
        Fp8QuantizeCase test = case_of(spec);
        test.shape = shape;
        CHECK(run_problem(spec, Fp8QuantizeProblem(test, random), 0, random, Spread::far));
    }
}

Fp8QuantizeCase random_case(const policy::Spec& spec, tests::Random& random) {
    Fp8QuantizeCase test = case_of(spec);
    const std::int64_t step = random.chance(0.5) ? 16 : 1;
    test.shape = {step * random.integer(1, 300 / step), step * random.integer(1, 200 / step)};
    if (random.chance(0.2)) test.shape[0] = 1;
    if (random.chance(0.2)) test.shape[1] = random.integer(1, 5000) / test.shape[0] + 1;
    test.scale = test.multiplier && random.chance(0.5);
    if (test.multiplier) test.multiplier = random.uniform(0.01, 4.0);
    if (test.multiplier && random.chance(0.2)) {
        test.multiplier.reset();
        test.scale = false;
    }
    if (constant(spec, "codes") == kNoCodes && random.chance(0.5)) {
        test.dynamic = test.rows = test.scale = true;
        test.multiplier = 1.0;
    }
    if (random.chance(0.4)) test.x_padding = random.integer(0, 3) * (random.chance(0.5) ? 8 : 1);
    if (random.chance(0.4)) test.out_padding = random.integer(0, 3) * (random.chance(0.5) ? 8 : 1);
    if (random.chance(0.4)) test.transposed_padding = random.integer(0, 17);
    return test;
}

}  // namespace

TEST_CASE("fp8_quantize") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize)) {
        INFO(policy::text_of(covered.spec));
        run_edges(covered.spec, random);
        run_far(covered.spec, random);
        for (int i = 0; i < problems_a_line(12); ++i) {
            const Fp8QuantizeCase test = random_case(covered.spec, random);
            const std::int64_t shift = random.chance(0.3) ? random.integer(1, 3) : 0;
            CHECK(run_problem(covered.spec, Fp8QuantizeProblem(test, random), shift, random));
        }
    }
}

// Several blocks, each with several tiles: whichever of them comes last casts all of x anew.
TEST_CASE("fp8_quantize: a state without a history takes its scale from x") {
    tests::Random random(run_seed());
    int seen = 0;
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize)) {
        Fp8QuantizeCase test = case_of(covered.spec);
        if (!test.amax || constant(covered.spec, "codes") == kNoCodes) continue;
        test.multiplier.reset();
        for (const std::int64_t rows : {1, 70, 600}) {
            // Of no history, and of one, by which x is cast as ever.
            for (const double multiplier : {0.0, 0.25}) {
                for (const double size : {1e-6, 1.0, 0.0, std::nan("")}) {
                    test.shape = {rows, 200};
                    test.state = multiplier;
                    Fp8QuantizeProblem problem(test, random);
                    for (std::int64_t i = 0; i < problem.x.elements(); ++i)
                        problem.x.set(i, size * static_cast<double>(random.integer(-8, 8)));
                    CHECK(run_problem(covered.spec, problem, random.integer(0, 1), random));
                }
            }
        }
        ++seen;
    }
    CHECK(seen >= 4);
}

TEST_CASE("fp8_quantize: an empty matrix has its numbers written") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize)) {
        for (const auto& shape : {std::vector<std::int64_t>{0, 40}, std::vector<std::int64_t>{7, 0},
                                  std::vector<std::int64_t>{0, 0}}) {
            Fp8QuantizeCase test = case_of(covered.spec);
            test.shape = shape;
            if (test.multiplier) test.multiplier = 4.0;
            test.scale = test.multiplier.has_value();
            CHECK(run_problem(covered.spec, Fp8QuantizeProblem(test, random), 0, random));
        }
    }
}

TEST_CASE("fp8_quantize: all 16-bit numbers, with the instruction and without") {
    tests::Random random(run_seed());
    int seen = 0;
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize)) {
        Fp8QuantizeCase test = case_of(covered.spec);
        if (test.dtype == DType::fp32 || !test.rows || test.transposed || test.amax) continue;
        test.shape = {65536};
        test.multiplier.reset();
        Fp8QuantizeProblem problem(test, random);
        problem.x = tests::every_number(test.dtype);
        CHECK(run_problem(covered.spec, problem, 0, random));
        ++seen;
    }
    CHECK(seen >= 4);
}

TEST_CASE("fp8_quantize: NaN and infinity reach amax from wherever they stand") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize)) {
        if (constant(covered.spec, "amax") == 0) continue;
        for (const double special :
             {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
            Fp8QuantizeCase test = case_of(covered.spec);
            test.shape = {70, 130};
            Fp8QuantizeProblem problem(test, random);
            problem.x.set(random.integer(0, 70 * 130 - 1), special);
            CHECK(run_problem(covered.spec, problem, 0, random));
        }
    }
}

}  // namespace jitney::emulator
