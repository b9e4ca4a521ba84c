// prewarm --linear: the specializations that linear layers on FP8 ask for.
#pragma once

#include <string>
#include <vector>

#include "cli/linear_form.hpp"
#include "cli/prewarm_targets.hpp"

namespace jitney::cli {

struct LinearOptions {
    std::vector<std::string> weights;  // "4096,14336": out_features, in_features; none: no layers
    std::string rows;                  // "1..8192"; empty: that
    LinearForm form;
    bool backward = false;
    int sms = 0;  // 0: of a common GPU of the arch, or of the GPU that is here

    void add_to(CLI::App& command);
    // Their texts, arch by arch and layer by layer; none without a layer. Throws Error.
    std::vector<std::string> specializations(const PrewarmTargets& targets) const;
};

}  // namespace jitney::cli
