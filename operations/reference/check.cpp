#include "operations/reference/check.hpp"

#include <algorithm>
#include <span>

#include "jitney/error.hpp"

namespace jitney::reference {

namespace {

std::string text_of(std::span<const std::int64_t> sizes) {
    std::string text = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(sizes[i]);
    }
    return text + "]";
}

std::span<const std::int64_t> shape_of(const Tensor& tensor) {
    return {tensor.shape.data(),
            static_cast<std::size_t>(std::clamp(tensor.ndim, 0, Tensor::max_dims))};
}

}  // namespace

std::string text_of_shape(const Tensor& tensor) {
    return text_of(shape_of(tensor));
}

void require(bool condition, const std::string& message) {
    if (!condition) throw Error(ErrorCode::invalid_argument, message);
}

void require_host(const Tensor& tensor, const std::string& name) {
    require(tensor.device.type == DeviceType::cpu,
            name + " is not in host memory; the reference backend runs on host tensors");
}

void require_shape(const Tensor& tensor, const std::string& name,
                   std::initializer_list<std::int64_t> shape) {
    require(std::ranges::equal(shape_of(tensor), shape),
            name + " has the shape " + text_of_shape(tensor) + "; it must be " +
                text_of({shape.begin(), shape.size()}));
}

void require_heads(const Tensor& tensor, const std::string& name, int dims) {
    require_host(tensor, name);
    require(tensor.ndim == dims,
            name + " has the shape " + text_of_shape(tensor) + "; it must be " +
                (dims == 4 ? "[batch, length, heads, head_dim]" : "[tokens, heads, head_dim]"));
    require(
        tensor.dtype == DType::fp32 || tensor.dtype == DType::fp16 || tensor.dtype == DType::bf16,
        name + " must be fp32, fp16 or bf16");
}

}  // namespace jitney::reference
