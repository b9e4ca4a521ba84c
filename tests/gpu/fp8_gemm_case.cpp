#include "tests/gpu/fp8_gemm_case.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "jitney/backend.hpp"
#include "runtime/device.hpp"

namespace jitney::tests {

bool has_fp8_tensor_cores() {
    const runtime::DeviceInfo& device = runtime::device(0);
    if (10 * device.major + device.minor >= 89) return true;
    MESSAGE("left out: ", device.name, " has no FP8 tensor cores");
    return false;
}

bool adds_in_few_bits(std::string_view kernel) {
    const runtime::DeviceInfo& device = runtime::device(0);
    const int arch = 10 * device.major + device.minor;
    if (arch == 90) return kernel != "fp8_gemm_mma";
    return arch == 89 || arch >= 120;
}

Fp8GemmOnDevice::Fp8GemmOnDevice(const Fp8GemmProblem& problem)
    : a(problem.a), b(problem.b), out(problem.out), scale(problem.scale) {
    if (problem.bias) bias.emplace(*problem.bias);
    if (problem.multiplier) multiplier.emplace(*problem.multiplier);
    if (problem.amax) amax.emplace(*problem.amax);
    if (problem.scale_a) scale_a.emplace(*problem.scale_a);
    if (problem.scale_b) scale_b.emplace(*problem.scale_b);
    if (problem.group_indptr) group_indptr.emplace(*problem.group_indptr);
}

Fp8GemmTensors Fp8GemmOnDevice::views() const {
    return views_of(*this, [](const DeviceTensor& tensor) { return tensor.view(); });
}

void run_fp8_gemm(const Fp8GemmCase& test, Random& random, const char* kernel) {
    INFO(test.text(), " ", random.text());
    Fp8GemmProblem problem(test, random);
    problem.test.few_bits = adds_in_few_bits(kernel);
    const Fp8GemmOnDevice device(problem);
    const Scope scope(kernel);
    fp8_gemm(problem.args(device.views()));
    if (test.m > 0 && test.n > 0) CHECK(last_run().starts_with(kernel));
    problem.run_reference();
    const std::string difference = problem.difference(device.out.download());
    CHECK_MESSAGE(difference.empty(), difference);
    if (problem.amax && test.m > 0 && test.n > 0) {
        const double expected = problem.amax->get(0);
        const double actual = device.amax->download().get(0);
        CHECK_MESSAGE(std::abs(actual - expected) <= 1e-3 * expected + 1e-6, actual, " instead of ",
                      expected);
    }
}

}  // namespace jitney::tests
