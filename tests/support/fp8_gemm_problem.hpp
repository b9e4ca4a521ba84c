// A product of FP8 matrices, with the tensors to run it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jitney/fp8_gemm.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

// How the rows of a matrix lie.
struct RowLayout {
    std::int64_t shift = 0;    // elements before the first of each row
    std::int64_t padding = 0;  // and behind its last
};

struct Fp8GemmCase {
    DType a = DType::fp8_e4m3;
    DType b = DType::fp8_e4m3;
    DType out = DType::bf16;
    std::int64_t m = 33;
    std::int64_t n = 48;
    std::int64_t k = 80;
    bool trans_a = false;
    bool trans_b = true;
    std::optional<DType> bias;
    bool amax = false;
    bool fast_accum = false;
    double scale = 0.37;
    bool few_bits = false;  // sums are those of tensor cores that keep 14 bits
    RowLayout a_rows = {};
    RowLayout b_rows = {};
    RowLayout out_rows = {};

    std::string text() const;
};

// Where the tensors of a problem are.
struct Fp8GemmTensors {
    Tensor a, b, out, scale;
    std::optional<Tensor> bias, multiplier, amax;
};

struct Fp8GemmProblem {
    Fp8GemmProblem(const Fp8GemmCase& problem, Random& random);

    // The arguments, over tensors that have the layouts of those below.
    Fp8GemmArgs args(const Fp8GemmTensors& tensors) const;
    // Computes out and amax.
    void run_reference();
    // How `actual`, of out's layout, is not what the reference computed; empty where it is.
    std::string difference(const HostTensor& actual) const;

    Fp8GemmCase test;
    HostTensor a;
    HostTensor b;
    HostTensor out;
    HostTensor scale;
    std::optional<HostTensor> bias;
    std::optional<HostTensor> multiplier;
    std::optional<HostTensor> amax;
};

}  // namespace jitney::tests
