// The kernels of tests/wrappers on the twins, as on a GPU that has all instructions.
#include "tests/emulator/toys/wrappers.hpp"

#define __CUDA_ARCH__ 900
#include "tests/wrappers/kernels.cuh"

namespace jitney::toys {
namespace {

using namespace wrappers;

template <auto function>
Kernel named(const char* name) {
    return emulator::kernel<function>(name);
}

}  // namespace

const std::vector<Kernel> wrapper_kernels = {
    named<&to_16_bits>("to_16_bits"),
    named<&to_8_bits>("to_8_bits"),
    named<&from_8_bits>("from_8_bits"),
    named<&fast_functions>("fast_functions"),
    named<&places>("places"),
    named<&counted>("counted"),
    named<&load_matrices<false>>("load_matrices<false>"),
    named<&load_matrices<true>>("load_matrices<true>"),
    named<&multiply_16_bits<kBf16>>("multiply_16_bits<kBf16>"),
    named<&multiply_16_bits<kFp16>>("multiply_16_bits<kFp16>"),
    named<&copies>("copies"),
    named<&groups_of_copies<0>>("groups_of_copies<0>"),
    named<&groups_of_copies<1>>("groups_of_copies<1>"),
    named<&groups_of_copies<2>>("groups_of_copies<2>"),
    named<&groups_of_copies<5>>("groups_of_copies<5>"),
    named<&multiply_8_bits<kFp8E4m3, kFp8E4m3>>("multiply_8_bits<kFp8E4m3, kFp8E4m3>"),
    named<&multiply_8_bits<kFp8E4m3, kFp8E5m2>>("multiply_8_bits<kFp8E4m3, kFp8E5m2>"),
    named<&multiply_8_bits<kFp8E5m2, kFp8E4m3>>("multiply_8_bits<kFp8E5m2, kFp8E4m3>"),
    named<&multiply_8_bits<kFp8E5m2, kFp8E5m2>>("multiply_8_bits<kFp8E5m2, kFp8E5m2>"),
};

}  // namespace jitney::toys
