// prewarm --model: the specializations that serving a model asks for.
#pragma once

#include <string>
#include <vector>

#include "cli/model_config.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct ModelOptions {
    std::string file;                // config.json; empty: no model
    std::vector<std::string> archs;  // empty: that of the GPU that is here
    std::string cache;               // "paged", "padded" or "both"; empty: paged
    ModelOverrides overrides;

    void add_to(CLI::App& command);
    bool given() const {
        return !file.empty() || !archs.empty() || !cache.empty() || !overrides.format.empty() ||
               !overrides.style.empty();
    }
    // Their texts, arch by arch; none without a model. Throws Error.
    std::vector<std::string> specializations() const;
};

}  // namespace jitney::cli
