// A product of FP8 matrices on the GPU, beside the reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/gpu/device.hpp"
#include "tests/support/fp8_gemm_problem.hpp"

namespace jitney::tests {

// False, with a message, where the GPU has no FP8 tensor cores: nothing to test there.
bool has_fp8_tensor_cores();

// Whether that kernel multiplies by units for FP8, which add up in few bits, or where none is named
// the one that calls get here.
bool adds_in_few_bits(std::string_view kernel = {});

// The tensors of a problem on the GPU.
struct Fp8GemmOnDevice {
    explicit Fp8GemmOnDevice(const Fp8GemmProblem& problem);

    Fp8GemmTensors views() const;

    DeviceTensor a;
    DeviceTensor b;
    DeviceTensor out;
    DeviceTensor scale;
    std::optional<DeviceTensor> bias;
    std::optional<DeviceTensor> multiplier;
    std::optional<DeviceTensor> amax;
    std::optional<DeviceTensor> scale_a;
    std::optional<DeviceTensor> scale_b;
    std::optional<DeviceTensor> group_indptr;
};

// Runs it on that kernel, and checks the output, what lies around it, and amax.
void run_fp8_gemm(const Fp8GemmCase& test, Random& random, const char* kernel = "fp8_gemm_mma");

}  // namespace jitney::tests
