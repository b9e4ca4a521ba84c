// The specializations that are compiled for the CPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/machine/launch.hpp"

namespace jitney::emulator {

// Null where that specialization is not compiled.
const Kernel* find_compiled(std::string_view specialization);

// The lines of covered.txt that are compiled, sorted.
std::vector<std::string> compiled_lines();

// Each generated source has one of these.
struct Registration {
    Registration(const char* line, const char* specialization, const Kernel& kernel);
};

// The first of what __launch_bounds__ was given.
template <class... More>
constexpr unsigned first_bound(unsigned threads, More...) {
    return threads;
}

}  // namespace jitney::emulator
