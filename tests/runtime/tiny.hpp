// One small kernel for these tests, and the fake driver's controls.
#pragma once

#include <string>

#include "runtime/kernel.hpp"
#include "tests/runtime/fake_cuda.hpp"

namespace jitney::tests {

runtime::KernelSource tiny_source(const std::string& arch = "sm_90a", int factor = 3);

// Packs arch number and factor.
runtime::KernelKey tiny_key(int arch = 90, int factor = 3);

// Makes tiny_source() of a tiny_key(); counts its calls in `tiny_descriptions`.
runtime::Describe tiny_describe();
extern int tiny_descriptions;

// Of the library that JITNEY_LIBCUDA names.
fake::Cuda& fake_cuda();

}  // namespace jitney::tests
