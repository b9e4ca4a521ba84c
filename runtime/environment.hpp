// The environment variables that this room obeys, read once a process.
#pragma once

#include <optional>
#include <string>

namespace jitney::runtime {

// The value of a variable; nothing where it is unset or empty, and in a set-user-id program, which
// opens no library that its caller names.
std::optional<std::string> environment(const char* name);

// JITNEY_JIT: whether kernels may be compiled while the program runs.
bool jit_enabled();

}  // namespace jitney::runtime
