#include "core/printable.hpp"

#include <cstddef>
#include <cstdint>

namespace jitney {
namespace {

struct CodePoint {
    std::uint32_t value = 0;
    std::size_t bytes = 0;  // 0: what stands here is no UTF-8
};

// The shortest form alone is UTF-8, and halves of surrogate pairs are none.
CodePoint code_point_at(std::string_view text) {
    const auto byte = [text](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
    };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first < 0xC2   ? 0
                              : first < 0xE0 ? 2
                              : first < 0xF0 ? 3
                              : first < 0xF5 ? 4
                                             : 0;
    if (bytes == 0 || bytes > text.size()) return {};
    std::uint32_t value = first & (0xFFU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        value = value << 6 | (byte(i) & 0x3F);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = value >= 0xD800 && value < 0xE000;
    if (value < kLeast[bytes] || surrogate || value > 0x10FFFF) return {};
    return {value, bytes};
}

// Controls, separators of lines and paragraphs, and what changes the direction of its surroundings.
bool is_control(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

std::string hex(std::uint32_t value, std::size_t least_digits) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (; value != 0 || digits.size() < least_digits; value >>= 4)
        digits.insert(digits.begin(), kDigits[value & 0xF]);
    return digits;
}

std::string escape(std::uint32_t c) {
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    return c < 0x80 ? "\\x" + hex(c, 2) : "\\u{" + hex(c, 2) + "}";
}

std::string shown(std::string_view text, std::string_view kept) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const CodePoint point = code_point_at(text);
        if (point.bytes == 0) {
            result += "\\x" + hex(static_cast<unsigned char>(text[0]), 2);
            text.remove_prefix(1);
            continue;
        }
        const std::string_view bytes = text.substr(0, point.bytes);
        if (is_control(point.value) && kept.find(bytes) == std::string_view::npos) {
            result += escape(point.value);
        } else {
            result += bytes;
        }
        text.remove_prefix(point.bytes);
    }
    return result;
}

}  // namespace

std::string printable(std::string_view text) {
    return shown(text, {});
}

std::string printable_lines(std::string_view text) {
    return shown(text, "\n\t");
}

}  // namespace jitney
