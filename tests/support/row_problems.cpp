#include "tests/support/row_problems.hpp"

#include <cmath>
#include <utility>

#include "operations/gated_activation/reference.hpp"
#include "operations/rms_norm/reference.hpp"

namespace jitney::tests {

namespace {

HostTensor rows_of(DType dtype, std::int64_t rows, std::int64_t d, std::int64_t gap) {
    return {dtype, {rows, d}, Layout{{}, {0, gap}}};
}

DType result_dtype(DType dtype, RowCodes codes) {
    return codes == RowCodes::none ? dtype : DType::fp8_e4m3;
}

const char* name_of_codes(RowCodes codes) {
    switch (codes) {
        case RowCodes::none:
            return "";
        case RowCodes::multiplied:
            return ", codes";
        case RowCodes::scaled:
            return ", codes and scales";
    }
    return "";
}

std::string text_of_rows(DType dtype, std::int64_t rows, std::int64_t d, std::int64_t gap,
                         RowCodes codes) {
    return std::string(name_of(dtype)) + " " + std::to_string(rows) + " x " + std::to_string(d) +
           (gap != 0 ? ", gaps of " + std::to_string(gap) : "") + name_of_codes(codes);
}

constexpr DType kFloats[] = {DType::bf16, DType::fp16, DType::fp32};
constexpr RowCodes kKinds[] = {RowCodes::none, RowCodes::multiplied, RowCodes::scaled};

}  // namespace

std::string NormCase::text() const {
    return text_of_rows(dtype, rows, d, gap, codes) +
           (weight ? ", weight " + std::string(name_of(*weight)) : "") +
           (residual ? ", residual" : "") + (bias ? ", bias" : "") +
           (one_plus_weight ? ", 1 + weight" : "") + (subtract_mean ? ", mean off" : "") +
           (in_place ? ", in place" : "");
}

std::string GateCase::text() const {
    return text_of_rows(dtype, rows, d, gap, codes) + ", activation " + std::to_string(activation) +
           (two ? ", two tensors" : "") + (in_place ? ", in place" : "");
}

NormProblem::NormProblem(const NormCase& problem, Random& random)
    : test(problem),
      x(rows_of(test.dtype, test.rows, test.d, test.gap)),
      residual(rows_of(test.dtype, test.rows, test.d, 2 * test.gap)),
      sum(rows_of(test.dtype, test.rows, test.d, 3 * test.gap)),
      weight(test.weight.value_or(DType::fp32), {test.d}),
      bias(test.weight.value_or(DType::fp32), {test.d}),
      out(rows_of(result_dtype(test.dtype, test.codes), test.rows, test.d, test.gap)),
      multiplier(DType::fp32, {1}),
      scale(DType::fp32, {test.rows}) {
    // Now and then so small that eps decides.
    x.fill_normal(random, random.chance(0.3) ? 2e-3 : random.uniform(0.5, 3.0));
    residual.fill_normal(random, 2.0);
    weight.fill_normal(random);
    bias.fill_normal(random);
    multiplier.set(0, random.uniform(10.0, 100.0));
}

std::vector<HostTensor*> NormProblem::inputs() {
    std::vector<HostTensor*> all{&x};
    if (test.residual) all.push_back(&residual);
    if (test.weight) all.push_back(&weight);
    if (test.bias) all.push_back(&bias);
    if (test.codes == RowCodes::multiplied) all.push_back(&multiplier);
    return all;
}

std::vector<HostTensor*> NormProblem::results() {
    std::vector<HostTensor*> all{&place_of_out()};
    if (test.residual) all.push_back(&place_of_sum());
    if (test.codes == RowCodes::scaled) all.push_back(&scale);
    return all;
}

void NormProblem::run_reference() {
    const bool in_place = std::exchange(test.in_place, false);
    reference::rms_norm(call<reference::RmsNorm>([](HostTensor& host) { return host.view(); }));
    test.in_place = in_place;
}

GateProblem::GateProblem(const GateCase& problem, Random& random)
    : test(problem),
      gate(rows_of(test.dtype, test.rows, test.two ? test.d : 2 * test.d, test.gap)),
      up(rows_of(test.dtype, test.rows, test.d, 2 * test.gap)),
      out(rows_of(result_dtype(test.dtype, test.codes), test.rows, test.d, 3 * test.gap)),
      multiplier(DType::fp32, {1}),
      scale(DType::fp32, {test.rows}) {
    gate.fill_normal(random, random.uniform(0.5, 3.0));
    up.fill_normal(random, 2.0);
    multiplier.set(0, random.uniform(10.0, 100.0));
}

std::vector<HostTensor*> GateProblem::inputs() {
    std::vector<HostTensor*> all{&gate};
    if (test.two) all.push_back(&up);
    if (test.codes == RowCodes::multiplied) all.push_back(&multiplier);
    return all;
}

std::vector<HostTensor*> GateProblem::results() {
    std::vector<HostTensor*> all{&place_of_out()};
    if (test.codes == RowCodes::scaled) all.push_back(&scale);
    return all;
}

void GateProblem::run_reference() {
    const bool in_place = std::exchange(test.in_place, false);
    reference::gated_activation(
        call<reference::GatedActivation>([](HostTensor& host) { return host.view(); }));
    test.in_place = in_place;
}

NormCase random_norm_case(Random& random, std::int64_t most_rows, std::int64_t most_d) {
    NormCase test;
    test.dtype = random.pick(std::span<const DType>(kFloats));
    test.weight.reset();
    if (random.chance(0.9)) test.weight = random.pick(std::span<const DType>(kFloats));
    test.codes = random.pick(std::span<const RowCodes>(kKinds));
    test.rows = random.integer(1, most_rows);
    test.d = random.integer(1, most_d);
    if (random.chance(0.6)) test.d = (test.d + 7) / 8 * 8;
    if (random.chance(0.4)) test.gap = random.chance(0.5) ? 8 : random.integer(1, 9);
    test.residual = random.chance(0.5);
    test.bias = test.weight && random.chance(0.3);
    test.one_plus_weight = test.weight && random.chance(0.3);
    test.subtract_mean = random.chance(0.3);
    test.in_place = random.chance(0.3);
    return test;
}

GateCase random_gate_case(Random& random, std::int64_t most_rows, std::int64_t most_d) {
    GateCase test;
    test.dtype = random.pick(std::span<const DType>(kFloats));
    test.codes = random.pick(std::span<const RowCodes>(kKinds));
    test.rows = random.integer(1, most_rows);
    test.d = random.integer(1, most_d);
    if (random.chance(0.6)) test.d = (test.d + 7) / 8 * 8;
    if (random.chance(0.4)) test.gap = random.chance(0.5) ? 8 : random.integer(1, 9);
    test.activation = static_cast<int>(random.integer(0, 3));
    test.two = random.chance(0.5);
    test.in_place = random.chance(0.3);
    return test;
}

std::string difference_of_rows(const HostTensor& actual, const HostTensor& expected) {
    if (!actual.surroundings_intact()) return "it was written beside its rows";
    const DType dtype = expected.dtype();
    Tolerance tolerance{1e-3, 1e-2};
    if (dtype == DType::fp32) tolerance = {2e-6, 2e-5};
    // The next code: an eighth, or the smallest subnormal.
    if (dtype == DType::fp8_e4m3) tolerance = {0.002, 0.126};
    // What is no number in one has to be none in the other; the rest is compared as numbers.
    HostTensor given = actual;
    HostTensor wanted = expected;
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
        if (!std::isnan(expected.get(i))) continue;
        if (!std::isnan(actual.get(i))) {
            return "element " + std::to_string(i) + " is " + std::to_string(actual.get(i)) +
                   " instead of NaN";
        }
        given.set(i, 0.0);
        wanted.set(i, 0.0);
    }
    const Comparison compared = compare(given, wanted, tolerance);
    if (!compared.within) return compared.text;
    if (dtype != DType::fp8_e4m3) return {};
    std::int64_t others = 0;
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
        const double a = actual.get(i);
        const double b = expected.get(i);
        if (a != b && !(std::isnan(a) && std::isnan(b))) ++others;
    }
    if (others <= 2 + expected.elements() / 100) return {};
    return std::to_string(others) + " of " + std::to_string(expected.elements()) +
           " codes are not those of the reference";
}

}  // namespace jitney::tests
