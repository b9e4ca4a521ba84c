#include "tests/support/host_tensor.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "operations/reference/numeric.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::tests {

namespace {

// Poisoned elements before the first and behind the last. A multiple of 64 bytes in every format,
// so that the first element is as aligned as the memory is.
constexpr std::int64_t kGuardElements = 64;

std::size_t sized(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

double load(const std::byte* address, DType dtype) {
    using namespace reference;
    switch (dtype) {
        case DType::fp32:
            return static_cast<double>(load_bits<float>(address));
        case DType::fp16:
            return static_cast<double>(from_fp16(load_bits<std::uint16_t>(address)));
        case DType::bf16:
            return static_cast<double>(from_bf16(load_bits<std::uint16_t>(address)));
        case DType::fp8_e4m3:
            return static_cast<double>(from_e4m3(load_bits<std::uint8_t>(address)));
        case DType::fp8_e5m2:
            return static_cast<double>(from_e5m2(load_bits<std::uint8_t>(address)));
        case DType::boolean:
            return load_bits<std::uint8_t>(address) == 0 ? 0.0 : 1.0;
        case DType::int32:
            return load_bits<std::int32_t>(address);
        case DType::int64:
            return static_cast<double>(load_bits<std::int64_t>(address));
    }
    throw std::logic_error("no such dtype");
}

void store(std::byte* address, DType dtype, double value) {
    using namespace reference;
    switch (dtype) {
        case DType::fp32:
            return store_bits(address, static_cast<float>(value));
        case DType::fp16:
            return store_bits(address, to_fp16(value));
        case DType::bf16:
            return store_bits(address, to_bf16(value));
        case DType::fp8_e4m3:
            return store_bits(address, to_e4m3(value));
        case DType::fp8_e5m2:
            return store_bits(address, to_e5m2(value));
        case DType::boolean:
            return store_bits(address, static_cast<std::uint8_t>(value != 0.0 ? 1 : 0));
        case DType::int32:
            return store_bits(address, static_cast<std::int32_t>(value));
        case DType::int64:
            return store_bits(address, static_cast<std::int64_t>(value));
    }
    throw std::logic_error("no such dtype");
}

}  // namespace

Layout set_apart(const Layout& layout, std::size_t dims, std::int64_t number) {
    Layout apart = layout;
    apart.padding.resize(dims, 0);
    for (std::size_t i = 1; i < dims; ++i)
        apart.padding[i] += i + 1 == dims ? 8 * number : number;
    return apart;
}

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape, const Layout& layout)
    : dtype_(dtype), shape_(std::move(shape)), strides_(shape_.size()) {
    std::vector<int> order = layout.order;
    if (order.empty()) {
        order.resize(shape_.size());
        std::iota(order.begin(), order.end(), 0);
    }
    std::vector<std::int64_t> padding = layout.padding;
    padding.resize(shape_.size(), 0);
    if (order.size() != shape_.size() || shape_.size() > sized(Tensor::max_dims)) {
        throw std::logic_error("a layout that does not fit the shape");
    }

    std::int64_t span = 1;
    for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
        strides_[sized(*dim)] = span;
        span *= shape_[sized(*dim)] + padding[sized(*dim)];
    }
    storage_.assign(sized((span + 2 * kGuardElements) * size_of(dtype)), kPoison);
}

std::int64_t HostTensor::elements() const {
    return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
}

Tensor HostTensor::view(const Device& device) {
    return view_at(storage_.data(), device);
}

Tensor HostTensor::view_at(void* base, Device device) const {
    Tensor view;
    view.data = static_cast<std::byte*>(base) + kGuardElements * size_of(dtype_);
    view.dtype = dtype_;
    view.device = device;
    view.ndim = static_cast<int>(shape_.size());
    std::ranges::copy(shape_, view.shape.begin());
    std::ranges::copy(strides_, view.strides.begin());
    return view;
}

std::int64_t HostTensor::offset_of(std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::size_t dim = shape_.size(); dim-- > 0;) {
        offset += index % shape_[dim] * strides_[dim];
        index /= shape_[dim];
    }
    return offset;
}

std::int64_t HostTensor::index_of(std::initializer_list<std::int64_t> position) const {
    if (position.size() != shape_.size()) throw std::logic_error("a position of another rank");
    std::int64_t index = 0;
    auto size = shape_.begin();
    for (const std::int64_t at : position) {
        if (at < 0 || at >= *size) throw std::logic_error("a position outside the tensor");
        index = index * *size++ + at;
    }
    return index;
}

std::byte* HostTensor::address(std::int64_t index) {
    return storage_.data() + (kGuardElements + offset_of(index)) * size_of(dtype_);
}
const std::byte* HostTensor::address(std::int64_t index) const {
    return storage_.data() + (kGuardElements + offset_of(index)) * size_of(dtype_);
}

double HostTensor::get(std::int64_t index) const {
    return load(address(index), dtype_);
}
void HostTensor::set(std::int64_t index, double value) {
    store(address(index), dtype_, value);
}
double HostTensor::at(std::initializer_list<std::int64_t> position) const {
    return get(index_of(position));
}
void HostTensor::put(std::initializer_list<std::int64_t> position, double value) {
    set(index_of(position), value);
}

void HostTensor::fill(const std::function<double(std::int64_t)>& value_at) {
    const std::int64_t count = elements();
    for (std::int64_t i = 0; i < count; ++i)
        set(i, value_at(i));
}
void HostTensor::fill_normal(Random& random, double deviation) {
    fill([&](std::int64_t) { return deviation * random.normal(); });
}
void HostTensor::fill_uniform(Random& random, double low, double high) {
    fill([&](std::int64_t) { return random.uniform(low, high); });
}
void HostTensor::poison() {
    std::ranges::fill(storage_, kPoison);
}

bool HostTensor::surroundings_intact() const {
    std::vector<bool> owned(storage_.size(), false);
    const std::int64_t count = elements();
    for (std::int64_t i = 0; i < count; ++i) {
        const auto first = address(i) - storage_.data();
        for (std::int64_t b = 0; b < size_of(dtype_); ++b)
            owned[sized(first + b)] = true;
    }
    for (std::size_t b = 0; b < storage_.size(); ++b) {
        if (!owned[b] && storage_[b] != kPoison) return false;
    }
    return true;
}

std::string HostTensor::text_of_position(std::int64_t index) const {
    std::string text = "]";
    for (std::size_t dim = shape_.size(); dim-- > 0;) {
        text = std::to_string(index % shape_[dim]) + text;
        if (dim > 0) text = ", " + text;
        index /= shape_[dim];
    }
    return "[" + text;
}

}  // namespace jitney::tests
