// The GPUs for which prewarm chooses kernels: those of --arch, or the one that is here.
#pragma once

#include <string>
#include <vector>

#include "policy/device_facts.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct PrewarmTargets {
    std::vector<std::string> archs;  // empty: that of the GPU that is here

    void add_to(CLI::App& command);
    // Throws Error.
    std::vector<policy::DeviceFacts> facts() const;
};

}  // namespace jitney::cli
