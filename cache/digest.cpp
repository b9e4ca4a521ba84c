#include "cache/digest.hpp"

#include <xxhash.h>

namespace jitney::cache {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

}  // namespace

std::string Digest::hex() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text(32, '0');
    for (std::size_t i = 0; i < 16; ++i) {
        text[15 - i] = kDigits[(high >> (4 * i)) & 15];
        text[31 - i] = kDigits[(low >> (4 * i)) & 15];
    }
    return text;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
    if (text.size() != 32) return std::nullopt;
    Digest digest;
    for (std::size_t i = 0; i < 32; ++i) {
        const int value = hex_value(text[i]);
        if (value < 0) return std::nullopt;
        std::uint64_t& half = i < 16 ? digest.high : digest.low;
        half = (half << 4) | static_cast<std::uint64_t>(value);
    }
    return digest;
}

Digest digest_of(std::string_view bytes) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.high64, hash.low64};
}

Digest digest_of(std::initializer_list<std::string_view> pieces) {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (const std::string_view piece : pieces) {
        XXH3_128bits_update(&state, piece.data(), piece.size());
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return {hash.high64, hash.low64};
}

}  // namespace jitney::cache
