// What turns the codes of a product into numbers: whether the scales that a call gives can be
// meant.
#pragma once

#include <cstdint>

#include "jitney/fp8_gemm.hpp"
#include "kernel_sources/fp8/gemm_params.h"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

// One fp32, where `a` is.
void check_scalar(const Named& a, const Named& number, Data data);

struct Fp8GemmSizes {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t groups;  // of rows of a; 0: none
};

// Returns which kind of scales there are.
Fp8Scales check_scales(const Fp8GemmArgs& args, const Named& a, const Fp8GemmSizes& sizes,
                       Data data);

}  // namespace jitney::checks
