// XXH3-128: the name of a key and the checksum of an entry. It finds accidents, not attackers:
// who may write to a cache directory is a matter of ownership and permissions.
#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace jitney::cache {

struct Digest {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    friend auto operator<=>(const Digest&, const Digest&) = default;

    std::string hex() const;  // 32 lower-case digits
    static std::optional<Digest> from_hex(std::string_view text);
};

Digest digest_of(std::string_view bytes);

// The digest of the pieces joined, without joining them.
Digest digest_of(std::initializer_list<std::string_view> pieces);

}  // namespace jitney::cache
