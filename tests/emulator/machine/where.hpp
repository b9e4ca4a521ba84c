// A place in device code: what a report points at.
#pragma once

#include <string>
#include <string_view>

namespace jitney::emulator {

struct Where {
    const char* file = "";
    int line = 0;

    // As the default argument of a function: the place of that function's call.
    static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }

    // The file's name without its directories.
    constexpr std::string_view name() const {
        const std::string_view path = file;
        return path.substr(path.rfind('/') + 1);
    }
    friend bool operator==(const Where&, const Where&) = default;
};

// The same for an address of code, as far as the debug information tells it; slow.
std::string place_of_code(const void* address);

}  // namespace jitney::emulator
