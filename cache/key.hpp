// The key of a compiled kernel: a clear text of everything that decides the machine code, and the
// digest of that text. No paths, no times: equal on every machine and in every checkout.
//
//     jitney-key 1
//     specialization 27 rotary_emb<...>@sm_90a
//     source 15 rotary/rotary.h 5d41402abc4b2a76b9719d911017c592
//     option 28 --gpu-architecture=sm_90a
//
// Every text is preceded by its length in bytes, so that no text, whatever it contains, can pass
// for another line. Sources stand in the order of their names, options in the order given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/digest.hpp"

namespace jitney::cache {

// The version of the key's text and of the entry's format; both change together.
inline constexpr std::uint32_t kSchema = 1;

struct Key {
    std::string material;
    Digest digest;

    static Key from_material(std::string material);
};

class KeyBuilder {
  public:
    explicit KeyBuilder(std::string_view specialization, std::uint32_t schema = kSchema);

    KeyBuilder& source(std::string_view name, std::string_view text);
    // For a caller that keeps the digest of a text that never changes.
    KeyBuilder& source(std::string_view name, const Digest& text_digest);
    KeyBuilder& option(std::string_view text);
    Key finish() const;

  private:
    struct NamedDigest {
        std::string name;
        Digest digest;
    };
    std::string specialization_;
    std::uint32_t schema_;
    std::vector<NamedDigest> sources_;
    std::vector<std::string> options_;
};

// Why a text is not the material of a key as KeyBuilder makes it, of a specialization that can be
// shown; empty where it is. What comes from elsewhere is held to that before it is kept or listed.
inline constexpr std::size_t kMaxSpecializationBytes = 4096;
std::string material_flaw(std::string_view material);

// The specialization text inside a key's material; empty when it is no such material.
std::string specialization_of(std::string_view material);

// Why two keys of one specialization differ, one line a difference ("source a.h differs",
// "option -G only in the first"); empty when they are equal.
std::vector<std::string> describe_difference(std::string_view first, std::string_view second);

}  // namespace jitney::cache
