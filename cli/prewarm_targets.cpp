#include "cli/prewarm_targets.hpp"

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "operations/kernel_launch.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"

namespace jitney::cli {

void PrewarmTargets::add_to(CLI::App& command) {
    add_texts(command, "--arch", archs, "ARCH",
              "An architecture for --model and --linear; may be given several times (the GPU's)");
}

std::vector<policy::DeviceFacts> PrewarmTargets::facts() const {
    std::vector<policy::DeviceFacts> facts;
    for (const std::string& arch : archs)
        facts.push_back(policy::facts_named(arch));
    if (!facts.empty()) return facts;
    if (!runtime::driver_available()) {
        refuse(
            "--model and --linear need an --arch, such as sm_90a, where there is no GPU to look "
            "at");
    }
    return {facts_of(runtime::device(0))};
}

}  // namespace jitney::cli
