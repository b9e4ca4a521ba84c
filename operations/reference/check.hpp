// The checks that the reference backend makes of its arguments.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// "[2, 128, 8, 64]"
std::string text_of_shape(const Tensor& tensor);

// Each throws Error(invalid_argument) where what it requires does not hold; `name` is what the
// sentence calls the tensor.
void require(bool condition, const std::string& message);
void require_host(const Tensor& tensor, const std::string& name);
void require_shape(const Tensor& tensor, const std::string& name,
                   std::initializer_list<std::int64_t> shape);
// A host tensor in fp32, fp16 or bf16, of four dimensions, or of three: without a batch.
void require_heads(const Tensor& tensor, const std::string& name, int dims = 4);

}  // namespace jitney::reference
