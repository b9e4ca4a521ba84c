#include "api/c_abi_tensor.hpp"

#include <cstddef>
#include <cstring>

#include "operations/refuse.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::c_abi {
namespace {

using checks::refuse;

// What programs that are built against any DLPack header of the same layout rely on.
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, ndim) == 16 &&
              offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24 &&
              offsetof(DLTensor, strides) == 32 && offsetof(DLTensor, byte_offset) == 40);

// A key of what counts: 8 bits of the code, 8 of the bits.
constexpr int key(int code, int bits) {
    return code << 8 | bits;
}

DType dtype_of(const DLDataType& type, const char* name) {
    if (type.lanes == 1) {
        switch (key(type.code, type.bits)) {
            case key(kDLFloat, 32):
                return DType::fp32;
            case key(kDLFloat, 16):
                return DType::fp16;
            case key(kDLBfloat, 16):
                return DType::bf16;
            case key(JITNEY_DL_FLOAT8_E4M3FN, 8):
                return DType::fp8_e4m3;
            case key(JITNEY_DL_FLOAT8_E5M2, 8):
                return DType::fp8_e5m2;
            case key(JITNEY_DL_BOOL, 8):
            case key(kDLUInt, 8):
                return DType::boolean;
            case key(kDLInt, 32):
                return DType::int32;
            case key(kDLInt, 64):
                return DType::int64;
            default:
                break;
        }
    }
    refuse(
        "{} has the DLPack type with code {}, {} bits and {} lanes; Jitney knows bfloat 16 (code "
        "4), float 16 and 32 (2), int 32 and 64 (0), bool (6, or unsigned 8 bits: 1), e4m3fn (10) "
        "and e5m2 (12), each with one lane: convert the tensor",
        name, type.code, type.bits, type.lanes);
}

Device device_of(const DLDevice& device, const char* name) {
    // As a number: a caller's value that is none of the enumerators is no value of the enum.
    static_assert(sizeof device.device_type == sizeof(int));
    int type = 0;
    std::memcpy(&type, &device.device_type, sizeof type);
    if (type == kDLCPU) return {DeviceType::cpu, 0};
    if (type != kDLCUDA) {
        refuse(
            "{} is on a device of DLPack's type {}; it must be host memory (kDLCPU, 1) or a GPU's "
            "(kDLCUDA, 2): pinned and managed memory go by the name of the side that shall compute",
            name, type);
    }
    if (device.device_id < 0) {
        refuse("{} is on the GPU {}; GPUs count from 0", name, device.device_id);
    }
    return {DeviceType::cuda, device.device_id};
}

void check_dims(const DLTensor& given, const char* name) {
    if (given.ndim < 0 || given.ndim > Tensor::max_dims) {
        refuse("{} has {} dimensions; there are from 0 to {}", name, given.ndim, Tensor::max_dims);
    }
    if (given.ndim > 0 && given.shape == nullptr) {
        refuse("{} has {} dimensions and no shape: give it a pointer to its sizes, not null", name,
               given.ndim);
    }
}

// Sizes that are negative, and those that are too large, are the operation's to refuse; here they
// only may not overflow.
void set_strides(Tensor& tensor, const std::int64_t* given, const char* name) {
    std::int64_t compact = 1;
    const bool empty = is_empty(tensor);
    for (auto i = static_cast<std::size_t>(tensor.ndim); i-- > 0;) {
        tensor.strides[i] = given != nullptr ? given[i] : compact;
        const std::int64_t size = tensor.shape[i];
        if (given == nullptr && size > 0 && !empty &&
            __builtin_mul_overflow(compact, size, &compact)) {
            refuse("{} has more elements than 64 bits can count: correct its shape", name);
        }
    }
}

// An offset that is no one's memory, such as a negative number, would come out before the tensor.
void* first_element(const DLTensor& given, const char* name) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 57;
    const auto begin = reinterpret_cast<std::uintptr_t>(given.data);
    if (given.byte_offset >= limit || begin + given.byte_offset < begin) {
        refuse(
            "{} has a byte_offset of {}, which leads out of all memory: offsets count forward, so "
            "let data point to the first element, and leave it 0",
            name, given.byte_offset);
    }
    return static_cast<std::byte*>(given.data) + given.byte_offset;
}

Tensor tensor_of(const DLTensor& given, const char* name) {
    check_dims(given, name);
    Tensor tensor;
    tensor.dtype = dtype_of(given.dtype, name);
    tensor.device = device_of(given.device, name);
    tensor.ndim = given.ndim;
    for (std::size_t i = 0; i < static_cast<std::size_t>(given.ndim); ++i)
        tensor.shape[i] = given.shape[i];
    set_strides(tensor, given.strides, name);
    // Null stays null, so that it is seen as what it is.
    if (given.data != nullptr) tensor.data = first_element(given, name);
    return tensor;
}

}  // namespace

Tensor required(const DLTensor* given, const char* name) {
    if (given == nullptr) refuse("{} is null; this call needs it: point it to a DLTensor", name);
    return tensor_of(*given, name);
}

std::optional<Tensor> optional(const DLTensor* given, const char* name) {
    if (given == nullptr) return std::nullopt;
    return tensor_of(*given, name);
}

}  // namespace jitney::c_abi
