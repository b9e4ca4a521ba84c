// What a file is that was given in place of a safetensors file, as its first bytes tell.
#pragma once

#include <string>
#include <string_view>

namespace jitney::cli {

// How many bytes of a file's beginning are worth a look.
inline constexpr std::size_t kFirstBytes = 512;

// "a Git LFS pointer, and not ...: ..." with what to do; empty where nothing is known of it.
std::string what_else_it_is(std::string_view first_bytes);

}  // namespace jitney::cli
