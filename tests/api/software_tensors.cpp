#include "tests/api/software_tensors.hpp"

#include <stdexcept>

namespace jitney::tests {

int constant(std::string_view image, const std::string& name) {
    const std::string mark = "static constexpr int " + name + " = ";
    const std::size_t at = image.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("no constant " + name);
    return std::stoi(std::string(image.substr(at + mark.size(), 8)));
}

Tensor tensor_of(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                 std::initializer_list<std::int64_t> strides) {
    return Tensor::strided(const_cast<void*>(data), dtype, shape, strides, {DeviceType::cpu, 0});
}

Tensor heads_of(const void* data, DType dtype, int batch, int length, int heads, int head_dim,
                const AttentionStrides& strides) {
    return tensor_of(data, dtype, {batch, length, heads, head_dim},
                     {strides.batch, strides.row, strides.head, 1});
}

Tensor ints_of(const int* data, std::int64_t count) {
    return tensor_of(data, DType::int32, {count}, {1});
}

std::optional<Tensor> number_of(const float* data) {
    if (data == nullptr) return std::nullopt;
    return tensor_of(data, DType::fp32, {1}, {1});
}

}  // namespace jitney::tests
