#include "runtime/tensor_map.hpp"

#include <fmt/format.h>

#include <cstring>

#include "jitney/error.hpp"
#include "runtime/driver.hpp"

namespace jitney::runtime {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));

constexpr std::uint64_t kAlignment = 16;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;

template <class... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> format, Values&&... values) {
    throw Error(
        ErrorCode::invalid_argument,
        "TMA can't see this tensor: " + fmt::format(format, std::forward<Values>(values)...));
}

CUtensorMapDataType data_type_of(DType dtype) {
    switch (dtype) {
        case DType::fp32:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        case DType::fp16:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        case DType::bf16:
            return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        case DType::fp8_e4m3:
        case DType::fp8_e5m2:
        case DType::boolean:
            return CU_TENSOR_MAP_DATA_TYPE_UINT8;
        case DType::int32:
            return CU_TENSOR_MAP_DATA_TYPE_INT32;
        case DType::int64:
            return CU_TENSOR_MAP_DATA_TYPE_INT64;
    }
    refuse("its dtype {} is unknown", static_cast<int>(dtype));
}

CUtensorMapSwizzle swizzle_of(Swizzle swizzle) {
    switch (swizzle) {
        case Swizzle::none:
            return CU_TENSOR_MAP_SWIZZLE_NONE;
        case Swizzle::bytes32:
            return CU_TENSOR_MAP_SWIZZLE_32B;
        case Swizzle::bytes64:
            return CU_TENSOR_MAP_SWIZZLE_64B;
        case Swizzle::bytes128:
            return CU_TENSOR_MAP_SWIZZLE_128B;
    }
    refuse("its swizzle {} is unknown", static_cast<int>(swizzle));
}

// The widest inner box of a swizzle; 0: any.
std::uint64_t span_of(Swizzle swizzle) {
    return swizzle == Swizzle::none ? 0 : std::uint64_t{16} << static_cast<int>(swizzle);
}

void check_shape(const void* base, const TensorMapShape& shape) {
    if (shape.rank < 2 || shape.rank > 5) refuse("it has {} dimensions, not 2 to 5", shape.rank);
    if (reinterpret_cast<std::uintptr_t>(base) % kAlignment != 0) {
        refuse("its address {} is not a multiple of {}", base, kAlignment);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) {
        if (shape.size[i] == 0 || shape.size[i] > kMaxSize) {
            refuse("dimension {} has {} elements, not 1 to {}", i, shape.size[i], kMaxSize);
        }
        if (shape.box[i] == 0 || shape.box[i] > kMaxBox) {
            refuse("its box has {} elements in dimension {}, not 1 to {}", shape.box[i], i,
                   kMaxBox);
        }
        if (i == 0) continue;
        const std::uint64_t stride = shape.stride_bytes[i - 1];
        if (stride % kAlignment != 0 || stride >= kMaxStride) {
            refuse("the stride of dimension {} is {} bytes, not a multiple of {} below {}", i,
                   stride, kAlignment, kMaxStride);
        }
    }
    const std::uint64_t inner =
        std::uint64_t{shape.box[0]} * static_cast<std::uint64_t>(size_of(shape.dtype));
    if (inner % kAlignment != 0) {
        refuse("the inner row of its box has {} bytes, not a multiple of {}", inner, kAlignment);
    }
    if (const std::uint64_t span = span_of(shape.swizzle); span != 0 && inner > span) {
        refuse("the inner row of its box has {} bytes, and its swizzle spans {}", inner, span);
    }
}

}  // namespace

TensorMap make_tensor_map(const void* base, const TensorMapShape& shape) {
    check_shape(base, shape);
    constexpr std::array<cuuint32_t, 5> kUnitSteps = {1, 1, 1, 1, 1};
    std::array<cuuint64_t, 5> sizes{};
    std::array<cuuint64_t, 4> strides{};
    for (std::size_t i = 0; i < sizes.size(); ++i)
        sizes[i] = shape.size[i];
    for (std::size_t i = 0; i < strides.size(); ++i)
        strides[i] = shape.stride_bytes[i];
    CUtensorMap encoded{};
    check(driver().cuTensorMapEncodeTiled(
              &encoded, data_type_of(shape.dtype), static_cast<cuuint32_t>(shape.rank),
              const_cast<void*>(base), sizes.data(), strides.data(), shape.box.data(),
              kUnitSteps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(shape.swizzle),
              shape.promote_to_l2_256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                      : CU_TENSOR_MAP_L2_PROMOTION_NONE,
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "cuTensorMapEncodeTiled");
    TensorMap map;
    std::memcpy(map.opaque.data(), &encoded, sizeof encoded);
    return map;
}

bool addresses_lead_maps() {
    static const bool lead = [] {
        TensorMapShape shape;
        shape.size = {64, 64};
        shape.stride_bytes = {128};
        shape.box = {64, 64};
        shape.swizzle = Swizzle::bytes128;
        // All of the bits that addresses have differ between the two.
        constexpr std::array<std::uintptr_t, 2> kAddresses = {0x2aaaaaaaaaa0, 0x555555555550};
        std::array<TensorMap, 2> maps;
        for (std::size_t i = 0; i < maps.size(); ++i) {
            maps[i] = make_tensor_map(reinterpret_cast<const void*>(kAddresses[i]), shape);
            if (maps[i].opaque[0] != kAddresses[i]) return false;
            maps[i].opaque[0] = 0;
        }
        return maps[0].opaque == maps[1].opaque;
    }();
    return lead;
}

}  // namespace jitney::runtime
