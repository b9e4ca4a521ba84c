// A list of what is to be compiled, in a file: a specialization a line, or a kernel of somebody's
// own (own_kernel.hpp); blank lines, and what follows a '#' behind a specialization, are left out.
#pragma once

#include <string>
#include <vector>

#include "jitney/kernel.hpp"

namespace jitney::cli {

struct Manifest {
    std::vector<std::string> specs;  // their texts, checked
    std::vector<KernelTarget> kernels;
};

// Throws Error that names the line.
Manifest read_manifest(const std::string& path);

}  // namespace jitney::cli
