#include "operations/tensor_checks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>

#include "core/arithmetic.hpp"
#include "operations/check_enum.hpp"
#include "operations/overlap.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

std::size_t index(int dim) {
    return static_cast<std::size_t>(dim);
}

std::span<const std::int64_t> dims_of(const std::array<std::int64_t, Tensor::max_dims>& values,
                                      int ndim) {
    return {values.data(), index(std::clamp(ndim, 0, Tensor::max_dims))};
}

// Of a tensor whose sizes are positive, and each of which 32 bits hold.
bool has_more_than(const Tensor& tensor, std::int64_t elements) {
    std::int64_t product = 1;
    for (const std::int64_t size : dims_of(tensor.shape, tensor.ndim)) {
        if (__builtin_mul_overflow(product, size, &product) || product > elements) return true;
    }
    return false;
}

}  // namespace

std::string shape_text(const Tensor& tensor) {
    return fmt::format("[{}]", fmt::join(dims_of(tensor.shape, tensor.ndim), ", "));
}

std::string strides_text(const Tensor& tensor) {
    return fmt::format("[{}]", fmt::join(dims_of(tensor.strides, tensor.ndim), ", "));
}

std::string text_of(const Device& device) {
    return device.type == DeviceType::cpu ? "host memory" : fmt::format("GPU {}", device.index);
}

void check_floating(const Named& named) {
    const DType dtype = named.tensor.dtype;
    if (dtype == DType::bf16 || dtype == DType::fp16 || dtype == DType::fp32) return;
    refuse("{} has the dtype {}; it must be bf16, fp16 or fp32", named.name, name_of(dtype));
}

void check_fp8(const Named& named) {
    const DType dtype = named.tensor.dtype;
    if (dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2) return;
    // Frameworks without FP8 types keep codes as bytes, which DLPack's callers pass on as they are.
    if (dtype == DType::boolean) {
        refuse(
            "{} has the dtype {}, as which DLPack's bool (code 6) and unsigned 8 bits (1) are "
            "read; "
            "it must be {} or {}: give its bytes DLPack's code 10 for the first, 12 for the second",
            named.name, name_of(dtype), name_of(DType::fp8_e4m3), name_of(DType::fp8_e5m2));
    }
    refuse("{} has the dtype {}; it must be {} or {}", named.name, name_of(dtype),
           name_of(DType::fp8_e4m3), name_of(DType::fp8_e5m2));
}

void check_bias_dtype(const Named& bias) {
    const DType dtype = bias.tensor.dtype;
    if (dtype == DType::bf16 || dtype == DType::fp32) return;
    refuse("{} has the dtype {}; it must be bf16 or fp32", bias.name, name_of(dtype));
}

void check_dtype(const Named& named, DType dtype) {
    if (named.tensor.dtype == dtype) return;
    refuse("{} has the dtype {}; it must be {}", named.name, name_of(named.tensor.dtype),
           name_of(dtype));
}

void check_same_dtype(const Named& first, const Named& other) {
    if (first.tensor.dtype == other.tensor.dtype) return;
    refuse("{} has the dtype {} and {} has {}; convert one of them, they must agree", first.name,
           name_of(first.tensor.dtype), other.name, name_of(other.tensor.dtype));
}

void check_sizes(const Named& named, int ndim) {
    const Tensor& tensor = named.tensor;
    if (tensor.ndim != ndim) {
        refuse("{} has {} dimensions, {}; it must have {}: {}", named.name, tensor.ndim,
               shape_text(tensor), ndim, named.dims);
    }
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    for (int i = 0; i < ndim; ++i) {
        const std::int64_t size = tensor.shape[index(i)];
        if (size < 0) {
            refuse("{} has the shape {}, whose size {} is negative: sizes count from 0, correct it",
                   named.name, shape_text(tensor), size);
        }
        if (size > limit) {
            refuse("{} has the shape {}, whose size {} is more than {}: split the call", named.name,
                   shape_text(tensor), size, limit);
        }
    }
}

void check_shape(const Named& named, std::initializer_list<std::int64_t> shape) {
    const Tensor& tensor = named.tensor;
    if (tensor.ndim == static_cast<int>(shape.size()) &&
        std::equal(shape.begin(), shape.end(), tensor.shape.begin())) {
        return;
    }
    refuse("{} has the shape {}; it must be [{}], which is {}", named.name, shape_text(tensor),
           fmt::join(shape, ", "), named.dims);
}

void check_same_shape(const Named& first, const Named& other) {
    const auto a = dims_of(first.tensor.shape, first.tensor.ndim);
    const auto b = dims_of(other.tensor.shape, other.tensor.ndim);
    if (std::equal(a.begin(), a.end(), b.begin(), b.end())) return;
    refuse("{} has the shape {} and {} has {}; they must agree", first.name,
           shape_text(first.tensor), other.name, shape_text(other.tensor));
}

void check_broadcast(const Named& named, int dim, std::int64_t size) {
    const std::int64_t has = named.tensor.shape[index(dim)];
    if (has == size || has == 1) return;
    refuse("{} has the shape {}, whose dimension {} is {}; it must be {} or 1: {}", named.name,
           shape_text(named.tensor), dim, has, size, named.dims);
}

void check_strides(const Named& named) {
    check_reach(named);
    const Tensor& tensor = named.tensor;
    const std::size_t last = index(tensor.ndim - 1);
    if (tensor.strides[last] == 1 || tensor.shape[last] <= 1 || is_empty(tensor)) return;
    refuse(
        "{} has the strides {}; the innermost must be 1, so copy the tensor into a layout whose "
        "last dimension is contiguous",
        named.name, strides_text(tensor));
}

void check_reach(const Named& named) {
    // Offsets are 64-bit numbers of elements, and addresses of memory have at most 57 bits.
    constexpr std::int64_t limit = std::int64_t{1} << 57;
    const Tensor& tensor = named.tensor;
    std::int64_t total = 0;
    for (int i = 0; i < tensor.ndim; ++i) {
        const std::int64_t size = tensor.shape[index(i)];
        if (size <= 1) continue;
        const std::int64_t reach = product(magnitude(tensor.strides[index(i)]), size - 1);
        if (reach < limit && (total += reach) < limit) continue;
        if (is_empty(tensor)) return;
        if (has_more_than(tensor, limit)) {
            refuse("{} has the shape {}, more elements than memory can hold: split the call",
                   named.name, shape_text(tensor));
        }
        refuse(
            "{} has the shape {} and the strides {}, whose stride {} leads out of all memory: "
            "give strides in elements",
            named.name, shape_text(tensor), strides_text(tensor), tensor.strides[index(i)]);
    }
}

void check_pointer(const Named& named, Data data) {
    const Tensor& tensor = named.tensor;
    if (tensor.data == nullptr) {
        if (data == Data::absent || is_empty(tensor)) return;
        refuse("{} has the shape {} and no data: give it a pointer to its first element, not null",
               named.name, shape_text(tensor));
    }
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
    const auto size = static_cast<std::uintptr_t>(size_of(tensor.dtype));
    if ((address & (size - 1)) != 0) {  // a power of two
        refuse(
            "{} begins at {:#x}, which is not a multiple of the {} bytes of an element of {}: "
            "give it an aligned pointer",
            named.name, address, size, name_of(tensor.dtype));
    }
}

void check_same_device(const Named& first, const Named& other) {
    check_enum<DeviceType>("the type of a device", first.tensor.device.type,
                           {{DeviceType::cpu, "cpu"}, {DeviceType::cuda, "cuda"}});
    if (is_same_place(first.tensor.device, other.tensor.device)) return;
    refuse(
        "{} is in {} and {} in {}; all tensors of a call must live on one device: copy one of "
        "them",
        first.name, text_of(first.tensor.device), other.name, text_of(other.tensor.device));
}

void check_no_overlap(const Named& named) {
    const Tensor& tensor = named.tensor;
    const SelfSharing found = shared_within(tensor);
    if (found.kind == Sharing::none) return;
    if (found.kind == Sharing::untold) {
        refuse(
            "{} is written, and its strides {} are too entangled to tell whether its rows overlap: "
            "shape {}; give each dimension a stride that spans those within it",
            named.name, strides_text(tensor), shape_text(tensor));
    }
    refuse(
        "{} is written, and its rows overlap: shape {}, strides {}; the stride {} of dimension {} "
        "leads to elements that the others lead to as well, so make it longer",
        named.name, shape_text(tensor), strides_text(tensor), tensor.strides[index(found.dim)],
        found.dim);
}

void check_number(const Named& named) {
    check_dtype(named, DType::fp32);
    const Tensor& tensor = named.tensor;
    if (tensor.ndim < 0 || tensor.ndim > Tensor::max_dims) {
        refuse("{} has {} dimensions; it must be one number: {}", named.name, tensor.ndim,
               named.dims);
    }
    for (int i = 0; i < tensor.ndim; ++i) {
        if (tensor.shape[index(i)] == 1) continue;
        refuse("{} has the shape {}; it must be one number: {}", named.name, shape_text(tensor),
               named.dims);
    }
}

Tensor as_matrix(const Named& named) {
    // Offsets in bytes have to fit in 64 bits.
    constexpr std::int64_t limit = std::int64_t{1} << 57;
    const Tensor& tensor = named.tensor;
    if (tensor.ndim < 1 || tensor.ndim > Tensor::max_dims) {
        refuse("{} has {} dimensions; it must have from 1 to {}: {}", named.name, tensor.ndim,
               Tensor::max_dims, named.dims);
    }
    const std::size_t last = index(tensor.ndim - 1);
    Tensor matrix = tensor;
    matrix.ndim = 2;
    matrix.shape = {1, tensor.shape[last]};
    matrix.strides = {tensor.shape[last], tensor.strides[last]};
    std::int64_t elements = 1;
    for (std::size_t i = 0; i <= last; ++i) {
        const std::int64_t size = tensor.shape[i];
        if (size < 0 ||
            __builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements) ||
            elements > limit) {
            refuse("{} has the shape {}, whose size {} can't be meant: correct it", named.name,
                   shape_text(tensor), size);
        }
    }
    check_strides(named);
    for (std::size_t i = last; i-- > 0;) {
        const std::int64_t size = tensor.shape[i];
        if (size != 1 && matrix.shape[0] == 1) {
            matrix.strides[0] = tensor.strides[i];
        } else if (size > 1 && !is_empty(tensor) &&
                   tensor.strides[i] != matrix.shape[0] * matrix.strides[0]) {
            refuse(
                "{} has the shape {} and the strides {}; the dimensions before the last must lie "
                "as one, so that there is one distance from row to row: call for each part, or "
                "copy the tensor into a contiguous one",
                named.name, shape_text(tensor), strides_text(tensor));
        }
        matrix.shape[0] *= size;
    }
    return matrix;
}

bool is_aligned(const Tensor& tensor) noexcept {
    // On every call: no division, which would cost more than all the rest.
    auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
    const auto size = static_cast<std::uint64_t>(size_of(tensor.dtype));
    for (int i = 0; i + 1 < tensor.ndim; ++i) {
        if (tensor.shape[index(i)] > 1) {
            bits |= static_cast<std::uint64_t>(tensor.strides[index(i)]) * size;
        }
    }
    return (bits & 15) == 0 || is_empty(tensor);
}

}  // namespace jitney::checks
