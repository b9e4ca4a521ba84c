// Where the packages of a Python in use are installed, without running a Python: NVIDIA's packages
// put NVRTC there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitney::runtime {

// What tells which Pythons are in use.
struct PythonHints {
    std::string own_directory;             // of the library or program that holds this code
    std::string program;                   // the executable of this process
    std::string called_as;                 // its first argument: in a virtual environment, a link
    std::vector<std::string> loaded;       // the files of the libraries that it has loaded
    std::string virtual_environment;       // VIRTUAL_ENV
    std::string conda_prefix;              // CONDA_PREFIX
    std::vector<std::string> search_path;  // PATH
    std::string user_base;                 // PYTHONUSERBASE, else ~/.local

    static PythonHints of_this_process(const std::string& own_directory);
};

// The directories of packages (site-packages, Debian's dist-packages), the nearest Python first:
//   1. the one that holds this code, or that belongs to the environment whose bin/ holds it
//   2. where this process is a Python: that of its virtual environment or installation
//   3. those that libraries of this process were loaded from
//   4. VIRTUAL_ENV, CONDA_PREFIX
//   5. the first python3 on PATH
std::vector<std::string> python_sites(const PythonHints& hints);

}  // namespace jitney::runtime
