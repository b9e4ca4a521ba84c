// prewarm --model: the specializations that serving a model asks for.
#pragma once

#include <string>
#include <vector>

#include "cli/model_config.hpp"
#include "cli/prewarm_targets.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct ModelOptions {
    std::string file;   // config.json; empty: no model
    std::string cache;  // "paged", "padded" or "both"; empty: paged
    ModelOverrides overrides;

    void add_to(CLI::App& command);
    // Their texts, arch by arch; none without a model. Throws Error.
    std::vector<std::string> specializations(const PrewarmTargets& targets) const;
};

}  // namespace jitney::cli
