// One compiled kernel, and the bytes of its file:
//
//     entry    := magic schema kind compiler_bytes material_bytes name_bytes zero payload_bytes
//                 compiler material lowered_name checksum payload
//     magic    := 89 'J' 'I' 'T' 'N' 'E' 'Y' 0a
//     schema, kind, compiler_bytes, material_bytes, name_bytes, zero := u32; payload_bytes := u64
//     checksum := XXH3-128 of everything before it and of the payload: u64 high, u64 low
//
// Integers are little-endian. kind is 1 (cubin) or 2 (ptx); the compiler is that of the file's
// name, the material is the key's (cache/key.hpp). Nothing follows the payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/key.hpp"
#include "cache/name.hpp"
#include "jitney/cache_state.hpp"

namespace jitney::cache {

struct Entry {
    std::string material;      // of its key; the store fills it in
    std::string compiler;      // such as nvrtc13.0
    std::string lowered_name;  // the kernel's symbol in the payload
    PayloadKind kind = PayloadKind::cubin;
    std::string payload;  // bytes; as a std::string it ends in a NUL, which PTX needs
};

inline constexpr std::uint64_t kFixedHeadBytes = 40;
inline constexpr std::uint64_t kChecksumBytes = 16;
inline constexpr std::uint64_t kMaxMaterialBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxLoweredNameBytes = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 28;
inline constexpr std::uint64_t kMaxHeadBytes =
    kFixedHeadBytes + kMaxCompilerBytes + kMaxMaterialBytes + kMaxLoweredNameBytes + kChecksumBytes;
inline constexpr std::uint64_t kMaxEntryBytes = kMaxHeadBytes + kMaxPayloadBytes;

// Everything before the payload.
struct EntryHead {
    std::string material;
    std::string compiler;
    std::string lowered_name;
    PayloadKind kind = PayloadKind::cubin;
    std::uint64_t head_bytes = 0;  // the payload starts here
    std::uint64_t payload_bytes = 0;
    Digest checksum;
};

enum class Flaw { none, corrupt, other_schema, needs_more };

template <class Value>
struct Decoded {
    std::optional<Value> value;
    Flaw flaw = Flaw::none;
    std::string reason;  // for a person, when there is no value

    explicit operator bool() const { return value.has_value(); }
};

struct VerifiedEntry {
    Entry entry;
    Digest checksum;
};

// Why the entry can't be encoded (a field over its limit, a compiler that is none); empty if it
// can.
std::string unencodable(const Entry& entry);

std::string encode(const Entry& entry);

// Decodes the head from the first bytes of a file of file_bytes; Flaw::needs_more when `prefix`
// is shorter than the head that it announces.
Decoded<EntryHead> decode_head(std::string_view prefix, std::uint64_t file_bytes);

// Decodes a whole file. Any flaw is an answer, never an exception, and allocates nothing large.
Decoded<VerifiedEntry> decode(std::string_view bytes);

// decode(), and the entry is the one that its file name says: digest, compiler and kind.
Decoded<VerifiedEntry> decode_as(std::string_view bytes, const EntryName& name);

EntryName name_of(const Entry& entry);

}  // namespace jitney::cache
