// What the operations demand of a tensor. Each check throws Error(invalid_argument) with one
// sentence: what is wrong, with the values, and what to do. Where all is well, a check is a few
// comparisons: sentences are made where they are thrown.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/steps.hpp"
#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney::checks {

// A tensor as sentences call it.
struct Named {
    const char* name;  // "q"
    const Tensor& tensor;
    const char* dims;  // "[batch, q_len, q_heads, head_dim]"
};

// Whether the tensors exist.
enum class Data {
    present,
    placed,  // a plan is made: nothing reads what they hold
    absent,  // explain() asks: addresses may be null, too; those that are given have to be right
};

// The CPU has one index, whatever the tensors say.
inline bool is_same_place(const Device& a, const Device& b) noexcept {
    return a == b || (a.type == DeviceType::cpu && b.type == DeviceType::cpu);
}

// "host memory", "GPU 1"
std::string text_of(const Device& device);
// "[2, 1, 8, 128]"
std::string shape_text(const Tensor& tensor);
std::string strides_text(const Tensor& tensor);

// One of bf16, fp16 and fp32.
void check_floating(const Named& named);
// One of fp8_e4m3 and fp8_e5m2.
void check_fp8(const Named& named);
// One of bf16 and fp32.
void check_bias_dtype(const Named& bias);
void check_dtype(const Named& named, DType dtype);
void check_same_dtype(const Named& first, const Named& other);
// The right number of dimensions, and sizes from 0 to 2^31 - 1.
void check_sizes(const Named& named, int ndim);
void check_shape(const Named& named, std::initializer_list<std::int64_t> shape);
void check_same_shape(const Named& first, const Named& other);
// Dimension `dim` has `size`, or 1 and is broadcast.
void check_broadcast(const Named& named, int dim, std::int64_t size);
// The innermost is 1, and no element lies further away than memory reaches. Strides of a dimension
// of size 1 count for nothing, nor do those of a tensor that is empty.
void check_strides(const Named& named);
// The second half of that, for tensors whose innermost stride is free.
void check_reach(const Named& named);
// A multiple of the element's size, and not null where there is something in a tensor that exists.
void check_pointer(const Named& named, Data data);
void check_same_device(const Named& first, const Named& other);
// No two elements share memory: for tensors that are written, and whose strides are checked.
void check_no_overlap(const Named& named);

// One fp32, in whatever shape.
void check_number(const Named& named);
// [rows, cols] of a tensor of at least one dimension, the rows being all that lies before the last.
// Refuses one whose rows can't be walked in one stride.
Tensor as_matrix(const Named& named);

// Pointer and strides, the innermost aside, are multiples of 16 bytes; or there is nothing to read.
bool is_aligned(const Tensor& tensor) noexcept;

}  // namespace jitney::checks
