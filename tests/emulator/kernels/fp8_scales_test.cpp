// Every specialization of the casts that make several scales, on random matrices. Codes and scales
// must be the reference's bit for bit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel_sources/fp8/quantize_scales.h"
#include "operations/fp8_quantize/operation.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/emulator/seed.hpp"
#include "tests/support/fp8_quantize_problem.hpp"

namespace jitney::emulator {
namespace {

using tests::Fp8QuantizeCase;
using tests::Fp8QuantizeProblem;
using Op = OperationOf<Fp8QuantizeArgs>;
using Spread = EmulatedTensor::Spread;

struct Placement {
    std::int64_t shift = 0;  // elements from where tensors would be aligned
    Spread spread = Spread::near;
};

// Whether it is for so many rows that each thread takes several vectors: on one SM they are not as
// many.
bool is_of_many_rows(const policy::Spec& spec) {
    return spec.kernel == policy::KernelId::fp8_quantize_rows &&
           policy::value_of(spec, "vectors") >= 4;
}

policy::DeviceFacts facts_of(const policy::Spec& spec) {
    policy::DeviceFacts facts = policy::typical_facts(spec.arch());
    if (is_of_many_rows(spec)) facts.sm_count = 1;
    return facts;
}

// False where the policy runs the call as another specialization, and nothing has run then.
bool run_problem(const policy::Spec& spec, Fp8QuantizeProblem problem, const Placement& place,
                 tests::Random& random) {
    INFO(policy::text_of(spec), ": ", problem.test.text(), ", shifted by ", place.shift, ", ",
         random.text());
    using Use = EmulatedTensor::Use;
    const EmulatedTensor x(problem.x, Use::input, place.shift, {}, place.spread);
    const EmulatedTensor out(problem.out, Use::output, place.shift, {}, place.spread);
    const EmulatedTensor scale(problem.scale, Use::output, 0, {}, place.spread);
    const Fp8QuantizeArgs args = problem.args([&](const tests::HostTensor& tensor) {
        if (&tensor == &problem.x) return x.view();
        return &tensor == &problem.out ? out.view() : scale.view();
    });
    const auto seen = Op::check(args, checks::Data::present);
    const auto ranking = Op::rank(seen, facts_of(spec), std::nullopt);
    REQUIRE(ranking.choice);
    REQUIRE(ranking.choice->scales);
    const policy::Fp8ScalesChoice& choice = *ranking.choice->scales;
    if (!(choice.spec == spec)) return false;
    auto params = Op::fill(args, seen, *ranking.choice);
    Op::set_addresses(params, args, *ranking.choice, {});
    launch_choice(spec, choice.geometry, params.of(0), random);
    Fp8QuantizeProblem expected = problem;
    expected.run_reference();
    problem.out = out.download();
    problem.scale = scale.download();
    const std::string difference = problem.difference(expected);
    CHECK_MESSAGE(difference.empty(), difference);
    return true;
}

Fp8Granularity granularity_of(const policy::Spec& spec) {
    if (spec.kernel == policy::KernelId::fp8_quantize_rows) return Fp8Granularity::row;
    return policy::value_of(spec, "scale_rows") == 1 ? Fp8Granularity::group
                                                     : Fp8Granularity::block;
}

// A size whose rows this specialization takes.
std::int64_t size_of_rows(const policy::Spec& spec, tests::Random& random) {
    if (spec.kernel != policy::KernelId::fp8_quantize_rows) {
        return random.chance(0.5) ? 128 * random.integer(1, 5) : random.integer(1, 700);
    }
    const std::int64_t threads = policy::value_of(spec, "threads");
    const std::int64_t held = policy::value_of(spec, "vectors");
    const std::int64_t each = held != 0 ? held : 17;
    const std::int64_t fewer = threads > 32 ? threads - 32 : threads / 2;
    const std::int64_t vectors = random.integer(fewer * each + 1, threads * each);
    return vectors * policy::value_of(spec, "width");
}

Fp8QuantizeCase case_of(const policy::Spec& spec, tests::Random& random) {
    Fp8QuantizeCase test;
    test.ask_for(granularity_of(spec));
    test.dtype = static_cast<DType>(policy::value_of(spec, "format"));
    test.out = static_cast<DType>(policy::value_of(spec, "out"));
    const bool groups = spec.kernel == policy::KernelId::fp8_quantize_groups;
    test.shape = {random.integer(1, groups ? 300 : 9), size_of_rows(spec, random)};
    if (is_of_many_rows(spec)) {
        const std::int64_t vectors = test.cols() / policy::value_of(spec, "width");
        test.shape[0] = 4096 / vectors + random.integer(1, 4);
    }
    test.turned_scales = random.chance(0.5);
    test.power_of_two = random.chance(0.3);
    const std::int64_t step = groups && random.chance(0.4) ? 1 : 16;
    if (random.chance(0.5)) test.x_padding = step * random.integer(0, 2);
    if (random.chance(0.5)) test.out_padding = step * random.integer(0, 2);
    return test;
}

// Parts of zeros, of a NaN, of an infinity and of what all but vanishes, among others.
void put_extremes(Fp8QuantizeProblem& problem, tests::Random& random) {
    const std::int64_t rows = problem.test.row_count();
    const std::int64_t cols = problem.test.cols();
    for (const double extreme :
         {std::nan(""), std::numeric_limits<double>::infinity(), 3e38, 1e-42, 0.0}) {
        const std::int64_t row = random.integer(0, rows - 1);
        const std::int64_t first = random.integer(0, cols - 1) / 128 * 128;
        const bool alone = extreme == 0.0 || extreme == 1e-42;
        if (alone) {
            for (std::int64_t col = first; col < std::min(cols, first + 128); ++col)
                problem.x.set(row * cols + col, 0.0);
        }
        problem.x.set(row * cols + random.integer(first, std::min(cols, first + 128) - 1), extreme);
    }
}

void run_line(const policy::Spec& spec, tests::Random& random) {
    const int wanted = problems_a_line(12);
    const bool narrow =
        spec.kernel == policy::KernelId::fp8_quantize_rows && policy::value_of(spec, "width") == 1;
    int ran = 0;
    for (int tries = 0; ran < wanted && tries < 20 * wanted; ++tries) {
        Placement place;
        if (narrow || (spec.kernel == policy::KernelId::fp8_quantize_groups && random.chance(0.3)))
            place.shift = random.integer(narrow ? 1 : 0, 3);
        // Now and then with rows so far apart that no 32 bits hold their distance.
        if (ran % 3 == 2) place.spread = Spread::far;
        Fp8QuantizeProblem problem(case_of(spec, random), random);
        if (ran % 4 == 1) put_extremes(problem, random);
        ran += run_problem(spec, problem, place, random) ? 1 : 0;
    }
    CHECK_MESSAGE(ran == wanted, policy::text_of(spec),
                  ": random problems hardly ever ask for this specialization");
}

}  // namespace

TEST_CASE("fp8_quantize_rows") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize_rows))
        run_line(covered.spec, random);
}

TEST_CASE("fp8_quantize_groups") {
    tests::Random random(run_seed());
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize_groups))
        run_line(covered.spec, random);
}

TEST_CASE("fp8_quantize_rows: rows without columns have a scale of 1") {
    tests::Random random(run_seed());
    int seen = 0;
    for (const Covered& covered : covered_lines(policy::KernelId::fp8_quantize_rows)) {
        Fp8QuantizeCase test;
        test.ask_for(Fp8Granularity::row);
        test.dtype = static_cast<DType>(policy::value_of(covered.spec, "format"));
        test.out = static_cast<DType>(policy::value_of(covered.spec, "out"));
        test.shape = {200, 0};
        seen += run_problem(covered.spec, Fp8QuantizeProblem(test, random), {}, random) ? 1 : 0;
    }
    CHECK(seen >= 1);
}

}  // namespace jitney::emulator
