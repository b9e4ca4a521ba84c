// A product of FP8 matrices, with the tensors to run it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jitney/fp8_gemm.hpp"
#include "kernel_sources/fp8/gemm_params.h"
#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

// How the rows of a matrix lie.
struct RowLayout {
    std::int64_t shift = 0;    // elements before the first of each row
    std::int64_t padding = 0;  // and behind its last
};

// How the scales of a and of b lie, where they are apart.
struct ScaleLayout {
    bool one = false;  // a single number, where the other operand's are of rows or columns
    Layout memory = {};
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
    Fp8Scales scales = kOneScale;
    ScaleLayout scale_a = {};
    ScaleLayout scale_b = {};
    // Rows of each group; empty: one b for all. Rows before the first group and behind the last
    // belong to none.
    std::vector<std::int64_t> groups = {};
    std::int64_t rows_ahead = 0;
    bool alike = false;     // one bias for all groups
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
    std::optional<Tensor> scale_a, scale_b;  // in the place of scale
    std::optional<Tensor> group_indptr;
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
    std::optional<HostTensor> scale_a;
    std::optional<HostTensor> scale_b;
    std::optional<HostTensor> group_indptr;
};

// One view each of all tensors of a problem, or of the same tensors elsewhere.
template <class Tensors, class View>
Fp8GemmTensors views_of(Tensors& tensors, const View& view) {
    const auto if_given = [&view](auto& tensor) {
        return tensor ? std::optional<Tensor>(view(*tensor)) : std::nullopt;
    };
    return {view(tensors.a),           view(tensors.b),
            view(tensors.out),         view(tensors.scale),
            if_given(tensors.bias),    if_given(tensors.multiplier),
            if_given(tensors.amax),    if_given(tensors.scale_a),
            if_given(tensors.scale_b), if_given(tensors.group_indptr)};
}

}  // namespace jitney::tests
