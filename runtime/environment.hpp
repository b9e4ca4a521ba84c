// The environment variables that this room obeys, read once a process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitney::runtime {

// The value of a variable; nothing where it is unset or empty, and in a set-user-id program, which
// opens no library that its caller names.
std::optional<std::string> environment(const char* name);

// The directories of a variable such as PATH, which are separated by colons; empty parts too.
std::vector<std::string> parts_of_path(std::string_view list);

// JITNEY_JIT: whether kernels may be compiled while the program runs.
bool jit_enabled();

}  // namespace jitney::runtime
