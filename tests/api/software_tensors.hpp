// The tensors of a launch, from what its parameters hold, and the constants of its specialization.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "jitney/tensor.hpp"
#include "kernel_sources/attention/params.h"

namespace jitney::tests {

// Of a table or a pool nothing tells how many rows it has.
inline constexpr std::int64_t kMany = std::int64_t{1} << 30;

// `image` is the fake compiler's.
int constant(std::string_view image, const std::string& name);

Tensor tensor_of(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                 std::initializer_list<std::int64_t> strides);
// [batch, length, heads, head_dim]
Tensor heads_of(const void* data, DType dtype, int batch, int length, int heads, int head_dim,
                const AttentionStrides& strides);
Tensor ints_of(const int* data, std::int64_t count);
// fp32 [1]; nothing where it is null.
std::optional<Tensor> number_of(const float* data);

}  // namespace jitney::tests
