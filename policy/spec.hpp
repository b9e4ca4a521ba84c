// A specialization: one kernel with its constants fixed, for one arch. Its text,
//     attn_prefill_mma<head_dim=128,format=bf16,tile=64x64,kv=dense,causal=1>@sm_90a
// prints and parses back exactly.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/kernels.hpp"

namespace jitney::policy {

// Plain data without padding, so that it can be compared, hashed and passed as bytes.
struct Spec {
    static constexpr std::size_t max_values = 18;

    std::uint16_t arch_number = 0;
    char arch_suffix = 0;
    KernelId kernel = KernelId::attn_decode_scalar;
    // In the order of the registry; a tile takes two, a digest four.
    std::array<std::int16_t, max_values> values{};

    Arch arch() const noexcept { return {arch_number, arch_suffix}; }
    friend bool operator==(const Spec&, const Spec&) = default;
};
static_assert(sizeof(Spec) == 40);

// "tile_m" and "tile_n" are the sides of a tile.
struct NamedValue {
    std::string_view constant;
    int value;
};
// A specialization with these values of its constants, the rest 0. A value that the kernel has no
// constant for is left out. They are found quickest in the order of the registry.
Spec spec_of(KernelId kernel, const Arch& arch,
             std::initializer_list<NamedValue> values = {}) noexcept;
// Adds one to a list that has each once.
void add_once(std::vector<Spec>& specs, const Spec& spec);
// The one that was chosen, where one was.
template <class Choice>
void add_once(std::vector<Spec>& specs, const std::optional<Choice>& choice) {
    if (choice) add_once(specs, choice->spec);
}

// Throws Error (invalid_argument) that says what is wrong with the text, and what would be right.
Spec parse_spec(std::string_view text);
// For what is to be compiled ahead: no GPU would look for what has another name of its arch.
Spec parse_spec_of_gpu(std::string_view text);
std::string text_of(const Spec& spec);

// The value of a constant of the spec's kernel, by name ("tile_m" and "tile_n" for a tile).
int value_of(const Spec& spec, std::string_view constant) noexcept;

// The most dynamic shared memory that a block of it asks for at launch.
int shared_bytes(const Spec& spec);

// The digest of the caller's logits function; 0 where the spec has none, or its kernel takes none.
std::uint64_t logits_digest(const Spec& spec) noexcept;
void set_logits_digest(Spec& spec, std::uint64_t digest) noexcept;

// The text that is compiled: the constants as a struct, after the kernel's source. A logits
// function's `source`, a member of that struct, stands behind them.
std::string translation_unit(const Spec& spec, std::string_view source = {});
// The name expression of the kernel within it.
std::string function_name(const Spec& spec);

}  // namespace jitney::policy
