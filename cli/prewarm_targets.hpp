// The GPUs for which prewarm chooses kernels: those of --arch, or the one that is here.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace jitney::cli {

struct PrewarmTargets {
    std::vector<std::string> archs;  // empty: that of the GPU that is here

    void add_to(CLI::App& command);
    // "" is the GPU that is here. Throws Error where there is none and none is named.
    std::vector<std::string> names() const;
};

}  // namespace jitney::cli
