// rms_norm and gated_activation against the reference: formats, sizes from one element to what no
// thread can hold, gaps, unaligned rows, in place; results are poisoned before.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/gated_activation.hpp"
#include "jitney/rms_norm.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/row_problems.hpp"

namespace jitney::tests {
namespace {

void run(const RmsNormArgs& args, Stream stream = nullptr) {
    rms_norm(args, stream);
}
void run(const GatedActivationArgs& args, Stream stream = nullptr) {
    gated_activation(args, stream);
}

template <class Args, class Problem>
void run_problem(Problem& problem, const char* kernel) {
    INFO(problem.test.text());
    PlacedTensors<DeviceTensor> placed(
        problem, [](const HostTensor& host, bool) { return DeviceTensor(host); });
    run(problem.template call<Args>(placed.view()));
    CHECK(last_run().starts_with(kernel));
    check_results_of(problem, placed,
                     [](const char* name, const HostTensor& actual, const HostTensor& expected) {
                         const std::string difference = difference_of_rows(actual, expected);
                         CHECK_MESSAGE(difference.empty(), name, ": ", difference);
                     });
}

void run_norm(const NormCase& test, Random& random) {
    NormProblem problem(test, random);
    run_problem<RmsNormArgs>(problem, "rms_norm<");
}
void run_gate(const GateCase& test, Random& random) {
    GateProblem problem(test, random);
    run_problem<GatedActivationArgs>(problem, "gated_activation<");
}

// Sizes on both sides of each way to spread a row, and what no thread can hold.
std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> all = {1,    7,    8,    64,   127,  128,   264,
                                     1024, 1032, 4096, 5120, 8191, 14336, 16384};
    if (!is_quick()) all.insert(all.end(), {2, 8200, 16392, 32768, 65535, 65536});
    return all;
}

}  // namespace

TEST_CASE("norms: sizes and results") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const std::int64_t d : sizes()) {
        for (const RowCodes codes : {RowCodes::none, RowCodes::multiplied, RowCodes::scaled}) {
            NormCase test = random_norm_case(random, 9, 8);
            test.codes = codes;
            test.d = d;
            run_norm(test, random);
        }
    }
}

TEST_CASE("norms: random calls") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < (is_quick() ? 30 : 100); ++i)
        run_norm(random_norm_case(random, 40, random.chance(0.5) ? 200 : 9000), random);
}

TEST_CASE("norms: many rows") {
    Random random = Random::fresh();
    INFO(random.text());
    NormCase test;
    test.rows = is_quick() ? 3000 : 40000;
    for (const std::int64_t d : {128, 1024}) {
        test.d = d;
        test.residual = d == 1024;
        run_norm(test, random);
    }
}

TEST_CASE("gates: sizes and results") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const std::int64_t d : sizes()) {
        for (const RowCodes codes : {RowCodes::none, RowCodes::multiplied, RowCodes::scaled}) {
            GateCase test = random_gate_case(random, 9, 8);
            test.codes = codes;
            test.d = d;
            run_gate(test, random);
        }
    }
}

TEST_CASE("gates: random calls") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < (is_quick() ? 30 : 100); ++i)
        run_gate(random_gate_case(random, 40, random.chance(0.5) ? 200 : 9000), random);
}

// What is not a number stays in its row; infinities and zeros make no codes of their own.
TEST_CASE("rows of NaN, infinity and zeros") {
    Random random = Random::fresh();
    INFO(random.text());
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const RowCodes codes : {RowCodes::none, RowCodes::multiplied, RowCodes::scaled}) {
        NormCase test;
        test.d = 1000;
        test.codes = codes;
        NormProblem norm(test, random);
        norm.x.set(3, std::nan(""));
        norm.x.set(1000 + 7, infinity);
        for (std::int64_t i = 0; i < 1000; ++i)
            norm.x.set(2000 + i, 0.0);
        run_problem<RmsNormArgs>(norm, "rms_norm<");
        GateCase other;
        other.d = 1000;
        other.codes = codes;
        for (int activation = 0; activation < 4; ++activation) {
            other.activation = activation;
            GateProblem gate(other, random);
            gate.gate.set(3, std::nan(""));
            gate.gate.set(2000 + 7, infinity);
            for (std::int64_t i = 0; i < 2000; ++i)
                gate.gate.set(4000 + i, 0.0);
            run_problem<GatedActivationArgs>(gate, "gated_activation<");
        }
    }
}

// The same row, alone and among others: bit for bit the same.
TEST_CASE("a row's norm does not depend on how many there are") {
    Random random = Random::fresh();
    INFO(random.text());
    NormCase test;
    test.rows = 300;
    test.d = 4096;
    test.residual = true;
    NormProblem problem(test, random);
    PlacedTensors<DeviceTensor> placed(
        problem, [](const HostTensor& host, bool) { return DeviceTensor(host); });
    auto args = problem.call<RmsNormArgs>(placed.view());
    run(args);
    const HostTensor all = placed.of(problem.out).download();
    for (Tensor* tensor : {&args.x, &*args.residual, &*args.sum, &args.out})
        tensor->shape[0] = 1;
    placed.of(problem.out).upload(problem.out);
    run(args);
    const HostTensor alone = placed.of(problem.out).download();
    for (std::int64_t i = 0; i < test.d; ++i)
        REQUIRE(alone.get(i) == all.get(i));
}

TEST_SUITE_BEGIN("sanitizer");

TEST_CASE("rows under the sanitizer") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const std::int64_t d : {3, 64, 100, 1000, 4096, 20000}) {
        for (const RowCodes codes : {RowCodes::none, RowCodes::multiplied, RowCodes::scaled}) {
            NormCase norm = random_norm_case(random, 5, 8);
            norm.codes = codes;
            norm.d = d;
            run_norm(norm, random);
            GateCase gate = random_gate_case(random, 5, 8);
            gate.codes = codes;
            gate.d = d;
            run_gate(gate, random);
        }
    }
}

TEST_SUITE_END();

}  // namespace jitney::tests
