#include "cli/model_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "cli/problem.hpp"

namespace jitney::cli {

void ModelOptions::add_to(CLI::App& command) {
    command
        .add_option("--model", file,
                    "A model's config.json: all that serving it asks for on each --arch")
        ->type_name("FILE");
    add_word(command, "--kv-cache", cache, {"paged", "padded", "both"},
             "How the server of --model keeps keys and values (paged)");
    add_format(command, overrides.format, "What --model is served in (its torch_dtype)");
    add_word(command, "--style", overrides.style, {"interleaved", "half_split"},
             "Which elements the rotary embedding of --model turns together (its model_type's)");
}

std::vector<std::string> ModelOptions::specializations(const PrewarmTargets& targets) const {
    if (file.empty()) {
        for (const auto& [option, value] :
             {std::pair{"--kv-cache", &cache}, std::pair{"--format", &overrides.format},
              std::pair{"--style", &overrides.style}}) {
            if (!value->empty())
                refuse(fmt::format("{} is of a --model, which is missing", option));
        }
        return {};
    }
    const policy::Model model = read_model_config(file, overrides);
    std::vector<std::string> texts;
    for (const policy::DeviceFacts& facts : targets.facts()) {
        const std::size_t before = texts.size();
        const auto add = [&](policy::CacheForm form) {
            for (const policy::Spec& spec : policy::model_catalogue(model, form, facts))
                texts.push_back(policy::text_of(spec));
        };
        if (cache != "padded") add(policy::CacheForm::paged);
        if (cache == "padded" || cache == "both") add(policy::CacheForm::padded);
        if (texts.size() == before) {
            refuse(
                fmt::format("no attention kernel runs {} on {}: jitney explain attention --q "
                            "1,1,{},{} --kv 1,1,{},{} --arch {} says why",
                            file, facts.arch.text(), model.q_heads, model.head_dim, model.kv_heads,
                            model.head_dim, facts.arch.text()));
        }
    }
    return texts;
}

}  // namespace jitney::cli
