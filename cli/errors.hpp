// What becomes of an error: one line on stderr, whatever details there are, and an exit status.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "jitney/error.hpp"

namespace jitney::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kBadInput = 2;

int exit_status_of(ErrorCode code) noexcept;

// "jitney: error: ..." and "jitney: warning: ...", one line each, whatever text the sentence
// quotes. The lines of the details, such as a compiler's log, stand below it.
void print_error(std::string_view sentence, std::string_view details = {}) noexcept;
void print_warning(std::string_view sentence) noexcept;

// Prints the exception, a compiler's log after its line, and gives the exit status.
int report(const std::exception& error) noexcept;

// Throws Error (invalid_argument).
[[noreturn]] void refuse(const std::string& message);

}  // namespace jitney::cli
