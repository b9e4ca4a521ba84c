#include "tests/emulator/kernels/registry.hpp"

#include <map>

namespace jitney::emulator {
namespace {

struct Compiled {
    std::map<std::string, Kernel, std::less<>> kernels;  // by specialization
    std::map<std::string, const char*> lines;            // and the specialization of each
};

Compiled& compiled() {
    static Compiled all;
    return all;
}

}  // namespace

Registration::Registration(const char* line, const char* specialization, const Kernel& kernel) {
    compiled().lines.emplace(line, specialization);
    compiled().kernels.emplace(specialization, kernel);
}

const Kernel* find_compiled(std::string_view specialization) {
    const auto found = compiled().kernels.find(specialization);
    return found == compiled().kernels.end() ? nullptr : &found->second;
}

std::vector<std::string> compiled_lines() {
    std::vector<std::string> lines;
    for (const auto& [line, specialization] : compiled().lines)
        lines.push_back(line);
    return lines;
}

}  // namespace jitney::emulator
