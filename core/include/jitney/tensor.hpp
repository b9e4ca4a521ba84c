// A tensor is a view: pointer, dtype, shape, strides. It owns nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "jitney/export.hpp"

// The driver's stream handle (CUstream, and cudaStream_t: the same type).
struct CUstream_st;

namespace jitney {

using Stream = CUstream_st*;

enum class DType : std::uint8_t {
    fp32 = 0,
    fp16 = 1,
    bf16 = 2,
    fp8_e4m3 = 3,
    fp8_e5m2 = 4,
    boolean = 5,  // a byte of 0 or 1
    int32 = 6,
    int64 = 7,
};

// Bytes of one element.
constexpr int size_of(DType dtype) noexcept {
    switch (dtype) {
        case DType::fp32:
        case DType::int32:
            return 4;
        case DType::fp16:
        case DType::bf16:
            return 2;
        case DType::int64:
            return 8;
        case DType::fp8_e4m3:
        case DType::fp8_e5m2:
        case DType::boolean:
            return 1;
    }
    return 0;
}

// "fp32", "bf16", ...
JITNEY_API const char* name_of(DType dtype) noexcept;

enum class DeviceType : std::uint8_t { cpu = 0, cuda = 1 };

struct Device {
    DeviceType type = DeviceType::cuda;
    int index = 0;  // the driver's ordinal; 0 for the CPU
    friend bool operator==(const Device&, const Device&) = default;
};

struct Tensor {
    static constexpr int max_dims = 5;

    void* data = nullptr;
    DType dtype = DType::bf16;
    Device device;
    int ndim = 0;
    std::array<std::int64_t, max_dims> shape{};
    std::array<std::int64_t, max_dims> strides{};  // in elements

    // A contiguous (row-major) view. Throws Error where there are more than max_dims dimensions.
    JITNEY_API static Tensor contiguous(void* data, DType dtype,
                                        std::span<const std::int64_t> shape, Device device = {});
    static Tensor contiguous(void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                             Device device = {}) {
        return contiguous(data, dtype, std::span(shape.begin(), shape.size()), device);
    }
    // A view with strides of its own, in elements.
    JITNEY_API static Tensor strided(void* data, DType dtype, std::span<const std::int64_t> shape,
                                     std::span<const std::int64_t> strides, Device device = {});
    static Tensor strided(void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                          std::initializer_list<std::int64_t> strides, Device device = {}) {
        return strided(data, dtype, std::span(shape.begin(), shape.size()),
                       std::span(strides.begin(), strides.size()), device);
    }

    // How many there are; one in a tensor without dimensions, which is a number.
    std::int64_t elements() const noexcept {
        std::int64_t count = 1;
        for (int i = 0; i < ndim; ++i)
            count *= shape[static_cast<std::size_t>(i)];
        return count;
    }
};

}  // namespace jitney
