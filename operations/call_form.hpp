// The form of a call: all its arguments but the addresses of its data. Calls of one form have the
// same checks, choice and launch, so that what was prepared for one serves the others.
#pragma once

#include <cstdint>
#include <optional>

#include "jitney/attention.hpp"
#include "jitney/rotary.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// Equal but for the addresses, which are not null and equally aligned. Runs on every call: no
// branch but the last.
inline bool same_form(const Tensor& a, const Tensor& b) noexcept {
    auto differ = static_cast<std::uint64_t>(
        (reinterpret_cast<std::uintptr_t>(a.data) ^ reinterpret_cast<std::uintptr_t>(b.data)) & 15);
    differ |=
        static_cast<std::uint64_t>(a.dtype != b.dtype || a.device != b.device || a.ndim != b.ndim);
    for (std::size_t i = 0; i < Tensor::max_dims; ++i) {
        differ |=
            static_cast<std::uint64_t>((a.shape[i] ^ b.shape[i]) | (a.strides[i] ^ b.strides[i]));
    }
    return (differ | static_cast<std::uint64_t>(a.data == nullptr || b.data == nullptr)) == 0;
}

inline bool same_form(const std::optional<Tensor>& a, const std::optional<Tensor>& b) noexcept {
    return a.has_value() == b.has_value() && (!a || same_form(*a, *b));
}

// Whether what tells of lengths on the host has to be the same: max_kv_len, qo_indptr_host, and how
// many page numbers there are.
enum class Lengths { same, any };

// The checks of `prepared` hold for `args` too, but for whether its tensors lie apart. The
// workspace is no part of it.
bool same_form(const AttentionArgs& args, const AttentionArgs& prepared,
               Lengths lengths = Lengths::same) noexcept;
bool same_form(const RotaryArgs& args, const RotaryArgs& prepared) noexcept;

}  // namespace jitney
