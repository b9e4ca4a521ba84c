// Rotary embedding on the CPU: computed in fp64, rounded once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jitney/tensor.hpp"

namespace jitney::reference {

// Which elements of a head are turned together, by the angle i of the row of its position.
enum class RotaryStyle : std::uint8_t {
    interleaved,  // elements 2i and 2i + 1
    half_split,   // elements i and i + rotary_dim / 2
};

// (a, b) becomes (a cos - b sin, b cos + a sin); elements from rotary_dim on are copied bit for
// bit.
struct Rotary {
    // [batch, length, heads, head_dim], fp32, fp16 or bf16. q_out has q's shape and format, and may
    // be q itself.
    Tensor q;
    Tensor q_out;
    // The same angles for k, whose heads, head_dim and format may be others. Both or neither.
    std::optional<Tensor> k;
    std::optional<Tensor> k_out;
    Tensor cos;  // fp32 [positions, rotary_dim / 2]
    Tensor sin;
    // int32 or int64, [length] or [batch or 1, length]; without it the position is the index.
    std::optional<Tensor> positions;
    RotaryStyle style = RotaryStyle::interleaved;
};

// Throws Error(invalid_argument) where shapes disagree, or where a position has no row in cos and
// sin: then nothing has been written.
void rotary(const Rotary& call);

// An element of a positions tensor, of either form, and its name: "positions[0, 3]".
std::int64_t position_at(const Tensor& positions, std::int64_t batch, std::int64_t token);
std::string position_name(const Tensor& positions, std::int64_t batch, std::int64_t token);
// Whether cos and sin have a row for it, and the error where not: `what` begins the sentence,
// "positions[0, 3] is".
bool has_row(const Tensor& cos, std::int64_t position);
[[noreturn]] void refuse_position(const Tensor& cos, std::int64_t position,
                                  const std::string& what);

}  // namespace jitney::reference
