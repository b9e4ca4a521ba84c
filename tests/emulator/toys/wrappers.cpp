// The kernels of tests/wrappers on the twins, as on a GPU that has all instructions.
#include "tests/emulator/toys/wrappers.hpp"

#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL
#include "tests/wrappers/kernels.cuh"
// Behind the others, whose headers it takes.
#include "tests/wrappers/hopper_kernels.cuh"
#include "tests/wrappers/tensor_copy_kernels.cuh"

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
    named<&store_matrices>("store_matrices"),
    named<&phases>("phases"),
    named<&bulk_stores>("bulk_stores"),
    named<&named_barriers>("named_barriers"),
    named<&clusters>("clusters"),
    named<&sends_in_cluster>("sends_in_cluster"),
    named<&cluster_loads>("cluster_loads"),
    named<&shares_of_registers>("shares_of_registers"),
#define JITNEY_WARPGROUP(...) \
    named<&warpgroup_product<__VA_ARGS__>>("warpgroup_product<" #__VA_ARGS__ ">")
    JITNEY_WARPGROUP(kBf16, false, false, 0),
    JITNEY_WARPGROUP(kBf16, false, false, 1),
    JITNEY_WARPGROUP(kBf16, false, false, 2),
    JITNEY_WARPGROUP(kBf16, false, false, 3),
    JITNEY_WARPGROUP(kBf16, false, true, 0),
    JITNEY_WARPGROUP(kBf16, false, true, 1),
    JITNEY_WARPGROUP(kBf16, true, true, 2),
    JITNEY_WARPGROUP(kBf16, true, true, 3),
    JITNEY_WARPGROUP(kFp16, false, false, 1),
    JITNEY_WARPGROUP(kFp16, true, true, 1),
    JITNEY_WARPGROUP(kFp8E4m3, false, false, 1),
    JITNEY_WARPGROUP(kFp8E4m3, true, false, 2),
    named<&boxes<2>>("boxes<2>"),
    named<&boxes<4>>("boxes<4>"),
    named<&boxes<5>>("boxes<5>"),
    named<&boxes_for_blocks>("boxes_for_blocks"),
};

}  // namespace jitney::toys
