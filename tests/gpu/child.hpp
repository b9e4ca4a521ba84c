// A test case of this program in a process of its own, where nothing is loaded yet.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace jitney::tests {

// `test` is marked doctest::skip(); `variables` are set beside this process's own. 0 where it
// passed.
inline int run_child(const std::string& test, const std::string& variables = "") {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = variables + " '" + program + "' --no-skip -tc='" + test + "' >&2";
    return std::system(command.c_str());
}

}  // namespace jitney::tests
