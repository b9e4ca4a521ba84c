// The form of a call: all its arguments but the addresses of its data. Calls of one form have the
// same checks, choice and launch, so that what was prepared for one serves the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/merge_states.hpp"
#include "jitney/rotary.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// Equal but for the addresses, which are not null and equally aligned. Runs on every call: no
// branch but the last. All members are named, so that one that is added does not compile until it
// is compared too.
inline bool same_form(const Tensor& a, const Tensor& b) noexcept {
    const auto& [data, dtype, device, ndim, shape, strides] = b;
    auto differ = static_cast<std::uint64_t>(
        (reinterpret_cast<std::uintptr_t>(a.data) ^ reinterpret_cast<std::uintptr_t>(data)) & 15);
    differ |= static_cast<std::uint64_t>(a.dtype != dtype || a.device != device || a.ndim != ndim);
    for (std::size_t i = 0; i < Tensor::max_dims; ++i) {
        differ |= static_cast<std::uint64_t>((a.shape[i] ^ shape[i]) | (a.strides[i] ^ strides[i]));
    }
    return (differ | static_cast<std::uint64_t>(a.data == nullptr || data == nullptr)) == 0;
}

inline bool same_form(const std::optional<Tensor>& a, const std::optional<Tensor>& b) noexcept {
    return a.has_value() == b.has_value() && (!a || same_form(*a, *b));
}

inline bool same_form(const PartialState& a, const PartialState& b) noexcept {
    const auto& [out, lse] = b;
    return same_form(a.out, out) && same_form(a.lse, lse);
}

template <class Value>
bool same_value(const Value& a, const Value& b) noexcept {
    if constexpr (requires { same_form(a, b); }) {
        return same_form(a, b);
    } else if constexpr (requires { a == b; }) {
        return a == b;
    } else {
        return std::ranges::equal(
            a, b, [](const auto& one, const auto& other) { return same_value(one, other); });
    }
}

// The checks of `prepared` hold for `args` too, but for whether its tensors lie apart; and what
// was prepared for one is what the other asks for.
bool same_form(const AttentionArgs& args, const AttentionArgs& prepared) noexcept;
bool same_form(const RotaryArgs& args, const RotaryArgs& prepared) noexcept;
bool same_form(const AppendKvArgs& args, const AppendKvArgs& prepared) noexcept;
bool same_form(const MergeStatesArgs& args, const MergeStatesArgs& prepared) noexcept;

// Likewise for a run of the plan that was made for `planned`, which may differ in more.
bool is_run_of(const AttentionArgs& args, const AttentionArgs& planned) noexcept;

}  // namespace jitney
