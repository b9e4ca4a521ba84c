#include "tests/api/call_arena.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "operations/reference/numeric.hpp"

namespace jitney::tests {
namespace {

constexpr std::size_t kAlignment = 256;

void put_number(DType dtype, std::byte* at, double value) {
    const auto put = [at](auto code) { std::memcpy(at, &code, sizeof code); };
    switch (dtype) {
        case DType::fp32:
            return put(static_cast<float>(value));
        case DType::fp16:
            return put(reference::to_fp16(value));
        case DType::bf16:
            return put(reference::to_bf16(value));
        case DType::fp8_e4m3:
            return put(reference::to_e4m3(value));
        case DType::fp8_e5m2:
            return put(reference::to_e5m2(value));
        default:
            throw std::logic_error("no numbers of that dtype");
    }
}

template <class T>
T value_at(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace

CallArena::CallArena(std::uint64_t seed) : bytes_(kBytes), random_(seed) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    used_ = (kAlignment - address % kAlignment) % kAlignment;
}

Tensor CallArena::place(DType dtype, std::initializer_list<std::int64_t> shape) {
    Tensor tensor = Tensor::contiguous(nullptr, dtype, shape, {DeviceType::cuda, 0});
    const auto bytes = static_cast<std::size_t>(tensor.elements() * size_of(dtype));
    // As much again before and behind, and a little more for the smallest.
    const std::size_t room = (bytes + 2048) / kAlignment * kAlignment;
    const std::size_t begin = used_ + room;
    used_ = begin + (bytes + kAlignment - 1) / kAlignment * kAlignment + 2 * room;
    if (used_ > bytes_.size()) throw std::logic_error("the arena is too small");
    tensor.data = bytes_.data() + begin;
    return tensor;
}

Tensor CallArena::numbers(DType dtype, std::initializer_list<std::int64_t> shape) {
    const Tensor tensor = place(dtype, shape);
    auto* at = static_cast<std::byte*>(tensor.data);
    for (std::int64_t i = 0; i < tensor.elements(); ++i, at += size_of(dtype))
        put_number(dtype, at, random_.normal());
    return tensor;
}

Tensor CallArena::integers(DType dtype, std::initializer_list<std::int64_t> shape,
                           const std::vector<std::int64_t>& values) {
    const Tensor tensor = place(dtype, shape);
    auto* at = static_cast<std::byte*>(tensor.data);
    for (const std::int64_t value : values) {
        const auto narrow = static_cast<std::int32_t>(value);
        if (dtype == DType::int64) {
            std::memcpy(at, &value, sizeof value);
        } else {
            std::memcpy(at, &narrow, sizeof narrow);
        }
        at += size_of(dtype);
    }
    return tensor;
}

Tensor CallArena::booleans(std::initializer_list<std::int64_t> shape) {
    const Tensor tensor = place(DType::boolean, shape);
    auto* at = static_cast<std::byte*>(tensor.data);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
        at[i] = std::byte{static_cast<unsigned char>(random_.chance(0.7) ? 1 : 0)};
    return tensor;
}

Tensor CallArena::zeros(DType dtype, std::initializer_list<std::int64_t> shape) {
    return place(dtype, shape);
}

Workspace CallArena::workspace(std::size_t bytes) {
    const Tensor memory = place(DType::boolean, {static_cast<std::int64_t>(bytes)});
    return {memory.data, bytes};
}

void CallArena::set_contents(const std::vector<std::byte>& contents) {
    std::memcpy(bytes_.data(), contents.data(), bytes_.size());
    changed_ = true;
}

double number_at(const Tensor& tensor, std::int64_t offset) {
    const auto* at = static_cast<const std::byte*>(tensor.data) + offset * size_of(tensor.dtype);
    switch (tensor.dtype) {
        case DType::fp32:
            return value_at<float>(at);
        case DType::fp16:
            return reference::from_fp16(value_at<std::uint16_t>(at));
        case DType::bf16:
            return reference::from_bf16(value_at<std::uint16_t>(at));
        case DType::fp8_e4m3:
            return reference::from_e4m3(value_at<std::uint8_t>(at));
        case DType::fp8_e5m2:
            return reference::from_e5m2(value_at<std::uint8_t>(at));
        default:
            throw std::logic_error("no numbers of that dtype");
    }
}

}  // namespace jitney::tests
