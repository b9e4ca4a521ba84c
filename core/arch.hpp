// A GPU architecture as NVRTC and the specialization texts name it: sm_80, sm_90a, sm_120f.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jitney {

struct Arch {
    std::uint16_t number = 0;  // 10 * major + minor of the compute capability
    char suffix = 0;           // 'a' (this chip only), 'f' (its family), or 0

    std::string text() const;
    friend bool operator==(const Arch&, const Arch&) = default;
};

// "sm_90a" -> {90, 'a'}; nothing where the text is not an architecture's name.
std::optional<Arch> parse_arch(std::string_view text) noexcept;

// The arch that kernels are compiled for on a GPU of that compute capability. Hopper's own
// instructions exist only under the suffix a; the other chips take the plain name.
constexpr Arch arch_of_capability(int major, int minor) noexcept {
    const int number = 10 * major + minor;
    return {static_cast<std::uint16_t>(number), number == 90 ? 'a' : char{0}};
}

// Whether there is a GPU of that number, as far as this version knows.
bool is_known(const Arch& arch) noexcept;

// Why no GPU looks for kernels under this name of its arch, and which to give instead; empty where
// GPUs do, or where a GPU that is newer than this version might. What is compiled for sm_90, or for
// sm_12, would never be used.
std::string why_not_looked_up(const Arch& arch);

}  // namespace jitney
