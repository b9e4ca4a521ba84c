#include "tests/emulator/machine/where.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

namespace jitney::emulator {
namespace {

std::string base_name(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1));
}

// What addr2line prints for an offset into a program: function and place, one line each, and so
// on for what they were inlined into.
std::string first_lines_of(const char* program, std::uintptr_t offset) {
    const std::string command =
        fmt::format("addr2line -Cie '{}' {:#x} 2>/dev/null", program, offset);
    std::string text;
    if (FILE* pipe = ::popen(command.c_str(), "r")) {
        char line[512];
        while (std::fgets(line, sizeof line, pipe) != nullptr)
            text += line;
        ::pclose(pipe);
    }
    return text;
}

}  // namespace

std::string place_of_code(const void* address) {
    Dl_info program{};
    if (address == nullptr || ::dladdr(address, &program) == 0) return "an unknown place";
    const auto offset = reinterpret_cast<std::uintptr_t>(address) -
                        reinterpret_cast<std::uintptr_t>(program.dli_fbase);
    // The address is the one that the call returns to: the line is that of the byte before.
    const std::string text = first_lines_of(program.dli_fname, offset - 1);
    std::string places;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        line = line.substr(0, line.find(" (discriminator"));
        if (line.starts_with("??")) continue;
        if (!places.empty()) places += " in ";
        places += base_name(line);
    }
    return places.empty() ? fmt::format("{}+{:#x}", base_name(program.dli_fname), offset) : places;
}

}  // namespace jitney::emulator
