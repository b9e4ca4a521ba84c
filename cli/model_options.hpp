// prewarm --model: the specializations that serving a model asks for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/prewarm_targets.hpp"
#include "jitney/serving.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// A model as it was read, and what it asks for.
struct ServedModel {
    std::string file;
    ServingModel model;
    std::vector<std::string> specs;     // arch by arch
    std::vector<std::string> unserved;  // what is not served, a sentence each

    // A line for each kind of layers, and what was assumed.
    std::string text() const;
    nlohmann::ordered_json json() const;
};

struct ModelOptions {
    std::string file;    // config.json; empty: no model
    std::string cache;   // "paged", "padded" or "both"; empty: paged
    std::string format;  // "bf16"; empty: the file's
    std::string style;   // "interleaved"; empty: the model's

    void add_to(CLI::App& command);
    // Nothing without a model. `logits` is the function of layers whose scores need one; null:
    // there is none. Throws Error.
    std::optional<ServedModel> read(const PrewarmTargets& targets,
                                    const LogitsFunction* logits) const;
};

}  // namespace jitney::cli
