// Which bytes strided views touch. Both questions are answered exactly, so that views that lie
// between each other's rows, such as K and V in one buffer, are told from those that share memory.
#pragma once

#include <cstdint>

#include "jitney/tensor.hpp"

namespace jitney::checks {

// All bytes from a view's lowest to its highest; none of one that is empty or has no data. Runs on
// every call: without branches, and without zeros that are overwritten.
struct Span {
    std::uintptr_t first;
    std::uintptr_t bytes;
};

inline Span span_of(const Tensor& tensor) noexcept {
    // Unsigned, as what an empty view's strides say may be anything.
    std::uint64_t below = 0;
    std::uint64_t above = 0;
    bool empty = tensor.data == nullptr;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i) {
        const auto stride = static_cast<std::uint64_t>(tensor.strides[i]);
        const std::uint64_t reach = static_cast<std::uint64_t>(tensor.shape[i] - 1) * stride;
        const std::uint64_t backwards = tensor.strides[i] < 0 ? reach : 0;
        below += backwards;
        above += reach - backwards;
        empty |= tensor.shape[i] == 0;
    }
    const auto size = static_cast<std::uint64_t>(size_of(tensor.dtype));
    const auto bytes = empty ? 0 : (above - below + 1) * size;
    return {reinterpret_cast<std::uintptr_t>(tensor.data) + below * size, bytes};
}

inline bool meet(const Span& a, const Span& b) noexcept {
    const bool begins_within = (b.first - a.first < a.bytes) | (a.first - b.first < b.bytes);
    return (a.bytes != 0) & (b.bytes != 0) & begins_within;
}

enum class Sharing {
    none,
    some,
    untold,  // strides too entangled to search: none of a real layout's are
};

// Whether two views share a byte. Their strides lead nowhere out of memory (check_reach).
Sharing shared(const Tensor& a, const Tensor& b) noexcept;

// Whether a view leads two of its elements to one address, and a dimension that does.
struct SelfSharing {
    Sharing kind = Sharing::none;
    int dim = 0;
};
SelfSharing shared_within(const Tensor& tensor) noexcept;

}  // namespace jitney::checks
