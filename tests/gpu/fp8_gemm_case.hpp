// A product of FP8 matrices on the GPU, beside the reference.
#pragma once

#include <optional>
#include <string>

#include "tests/gpu/device.hpp"
#include "tests/support/fp8_gemm_problem.hpp"

namespace jitney::tests {

// False, with a message, where the GPU has no FP8 tensor cores: nothing to test there.
bool has_fp8_tensor_cores();

// Whether this GPU multiplies FP8 by units that add up in few bits.
bool adds_in_few_bits();

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
};

// Runs it on fp8_gemm_mma, and checks the output, what lies around it, and amax.
void run_fp8_gemm(const Fp8GemmCase& test, Random& random);

}  // namespace jitney::tests
