#include "core/arch.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace jitney {

std::string Arch::text() const {
    std::string text = "sm_" + std::to_string(number);
    if (suffix != 0) text += suffix;
    return text;
}

std::optional<Arch> parse_arch(std::string_view text) noexcept {
    constexpr std::string_view prefix = "sm_";
    if (!text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    Arch arch;
    if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
        arch.suffix = text.back();
        text.remove_suffix(1);
    }
    if (text.size() < 2 || text.size() > 3 || text.front() == '0') return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), arch.number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    // The suffixes came with Hopper and with Blackwell.
    if (arch.suffix == 'a' && arch.number < 90) return std::nullopt;
    if (arch.suffix == 'f' && arch.number < 100) return std::nullopt;
    return arch;
}

bool is_known(const Arch& arch) noexcept {
    constexpr std::uint16_t kNumbers[] = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80, 86,
                                          87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
    return std::ranges::find(kNumbers, arch.number) != std::end(kNumbers);
}

std::string why_not_looked_up(const Arch& arch) {
    constexpr std::uint16_t kNewest = 121;
    if (!is_known(arch) && arch.number <= kNewest) {
        return "no GPU is " + arch.text() +
               ", give an architecture such as sm_80, sm_89, sm_90a, sm_100 or sm_120";
    }
    const Arch asked = arch_of_capability(arch.number / 10, arch.number % 10);
    if (arch == asked) return {};
    return "no GPU looks for kernels of " + arch.text() + ", give " + asked.text() +
           ", which GPUs of compute capability " + std::to_string(arch.number / 10) + "." +
           std::to_string(arch.number % 10) + " take";
}

}  // namespace jitney
