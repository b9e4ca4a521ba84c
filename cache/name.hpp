// The name of an entry's file: <digest>-<compiler>.<cubin|ptx>, in the shard directory named by
// the first two digits of the digest. Only texts of this exact form ever reach the file system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/digest.hpp"

namespace jitney::cache {

enum class PayloadKind : std::uint32_t { cubin = 1, ptx = 2 };

std::string_view extension_of(PayloadKind kind);

// A compiler's text is lower-case letters and its version: nvrtc13.0.
inline constexpr std::size_t kMaxCompilerBytes = 32;
bool is_compiler(std::string_view text);

// Whether the version of `a` is newer than that of `b`, number by number; equal versions are
// ordered by their text, so that the order is total.
bool is_newer_compiler(std::string_view a, std::string_view b);

struct EntryName {
    Digest digest;
    std::string compiler;
    PayloadKind kind = PayloadKind::cubin;

    friend bool operator==(const EntryName&, const EntryName&) = default;

    std::string file() const;
    std::string shard() const;
    static std::optional<EntryName> parse(std::string_view file);
};

bool is_shard(std::string_view name);

// Names beside the entries: files being written, and locks of keys being compiled.
inline constexpr std::string_view kTempPrefix = ".tmp-";
inline constexpr std::string_view kLockPrefix = ".lock-";
bool is_temp(std::string_view name);
bool is_lock(std::string_view name);

}  // namespace jitney::cache
