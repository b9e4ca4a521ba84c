// Throws Error(invalid_argument) with a formatted sentence. For bodies alone: it brings fmt along.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "jitney/error.hpp"

namespace jitney::checks {

template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void refuse(fmt::format_string<Args...> format,
                                                   Args&&... args) {
    throw Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace jitney::checks
