#include "jitney/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "jitney/error.hpp"

namespace jitney {
namespace {

void check_dims(std::span<const std::int64_t> shape) {
    if (shape.size() > static_cast<std::size_t>(Tensor::max_dims)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("a tensor of {} dimensions was asked for; there are at most {}",
                                shape.size(), Tensor::max_dims));
    }
    if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("[{}] is no shape: sizes are 0 or more", fmt::join(shape, ", ")));
    }
}

}  // namespace

const char* name_of(DType dtype) noexcept {
    switch (dtype) {
        case DType::fp32:
            return "fp32";
        case DType::fp16:
            return "fp16";
        case DType::bf16:
            return "bf16";
        case DType::fp8_e4m3:
            return "fp8_e4m3";
        case DType::fp8_e5m2:
            return "fp8_e5m2";
        case DType::boolean:
            return "bool";
        case DType::int32:
            return "int32";
        case DType::int64:
            return "int64";
    }
    return "unknown";
}

Tensor Tensor::contiguous(void* data, DType dtype, std::span<const std::int64_t> shape,
                          Device device) {
    check_dims(shape);
    std::array<std::int64_t, max_dims> strides{};
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = stride;
        // A dimension of size 0 keeps the strides of a tensor that has something in it.
        if (__builtin_mul_overflow(stride, std::max<std::int64_t>(shape[i], 1), &stride)) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("a tensor of the shape [{}] has more elements than 64 bits "
                                    "can count",
                                    fmt::join(shape, ", ")));
        }
    }
    return strided(data, dtype, shape, std::span(strides.data(), shape.size()), device);
}

Tensor Tensor::strided(void* data, DType dtype, std::span<const std::int64_t> shape,
                       std::span<const std::int64_t> strides, Device device) {
    check_dims(shape);
    if (strides.size() != shape.size()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("a shape of {} dimensions and {} strides were given; there is one "
                                "stride a dimension",
                                shape.size(), strides.size()));
    }
    Tensor tensor;
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.device = device;
    tensor.ndim = static_cast<int>(shape.size());
    std::ranges::copy(shape, tensor.shape.begin());
    std::ranges::copy(strides, tensor.strides.begin());
    return tensor;
}

}  // namespace jitney
