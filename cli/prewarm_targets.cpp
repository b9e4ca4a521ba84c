#include "cli/prewarm_targets.hpp"

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "jitney/gpu.hpp"

namespace jitney::cli {

void PrewarmTargets::add_to(CLI::App& command) {
    add_texts(command, "--arch", archs, "ARCH",
              "An architecture for --model and --linear; may be given several times (the GPU's)");
}

std::vector<std::string> PrewarmTargets::names() const {
    if (!archs.empty()) return archs;
    if (gpu_count() == 0) {
        refuse(
            "--model and --linear need an --arch, such as sm_90a, where there is no GPU to look "
            "at");
    }
    return {std::string()};
}

}  // namespace jitney::cli
