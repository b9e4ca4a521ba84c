#include "tests/emulator/kernels/emulated_driver.hpp"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/driver.hpp"
#include "runtime/tensor_map.hpp"
#include "tests/emulator/machine/tensor_map.hpp"

namespace jitney::emulator {
namespace {

std::optional<DType> dtype_of(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_UINT8:
            return DType::fp8_e4m3;
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
            return DType::fp16;
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
            return DType::bf16;
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
            return DType::fp32;
        case CU_TENSOR_MAP_DATA_TYPE_INT32:
            return DType::int32;
        case CU_TENSOR_MAP_DATA_TYPE_INT64:
            return DType::int64;
        default:
            return std::nullopt;
    }
}

std::optional<runtime::Swizzle> swizzle_of(CUtensorMapSwizzle swizzle) {
    switch (swizzle) {
        case CU_TENSOR_MAP_SWIZZLE_NONE:
            return runtime::Swizzle::none;
        case CU_TENSOR_MAP_SWIZZLE_32B:
            return runtime::Swizzle::bytes32;
        case CU_TENSOR_MAP_SWIZZLE_64B:
            return runtime::Swizzle::bytes64;
        case CU_TENSOR_MAP_SWIZZLE_128B:
            return runtime::Swizzle::bytes128;
        default:
            return std::nullopt;
    }
}

CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                const cuuint64_t* size, const cuuint64_t* stride_bytes, const cuuint32_t* box,
                const cuuint32_t* steps, CUtensorMapInterleave interleave,
                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    const std::optional<DType> dtype = dtype_of(type);
    const std::optional<runtime::Swizzle> known = swizzle_of(swizzle);
    const bool plain = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
                       fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && rank <= 5 &&
                       std::all_of(steps, steps + rank, [](cuuint32_t step) { return step == 1; });
    if (!dtype || !known || !plain) return CUDA_ERROR_INVALID_VALUE;
    runtime::TensorMapShape shape;
    shape.rank = static_cast<int>(rank);
    shape.dtype = *dtype;
    shape.swizzle = *known;
    for (std::size_t i = 0; i < rank && i < shape.size.size(); ++i) {
        shape.size[i] = size[i];
        shape.box[i] = box[i];
        if (i != 0) shape.stride_bytes[i - 1] = stride_bytes[i - 1];
    }
    const TensorMapBits bits = tensor_map_bits(address, shape);
    static_assert(sizeof bits == sizeof *map);
    std::memcpy(map, &bits, sizeof bits);
    return CUDA_SUCCESS;
}

}  // namespace

void use_emulated_driver() {
    static const runtime::Driver driver = [] {
        runtime::Driver functions;
        functions.cuTensorMapEncodeTiled = &encode;
        return functions;
    }();
    runtime::detail::usable_driver.store(&driver);
}

}  // namespace jitney::emulator
