// What the library says on stderr: JITNEY_LOG=debug|info|warn|off, warn unless set.
#pragma once

#include <string_view>

namespace jitney::runtime::log {

enum class Level { debug, info, warn, off };

// Whether a message of that level would be written: ask before making a costly one.
bool enabled(Level level) noexcept;

void write(Level level, std::string_view message) noexcept;

inline void debug(std::string_view message) noexcept {
    write(Level::debug, message);
}
inline void info(std::string_view message) noexcept {
    write(Level::info, message);
}
inline void warn(std::string_view message) noexcept {
    write(Level::warn, message);
}

}  // namespace jitney::runtime::log
