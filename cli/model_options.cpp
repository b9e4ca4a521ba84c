#include "cli/model_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "cli/field_options.hpp"
#include "cli/file.hpp"
#include "cli/output.hpp"
#include "core/printable.hpp"

namespace jitney::cli {

namespace {

// Some list every weight that is quantised, or every word of a classifier.
constexpr std::uint64_t kMaxBytes = 64 << 20;

std::string number_or_dash(int number, int none) {
    return number == none ? "-" : std::to_string(number);
}

std::string window_text(const ServingLayer& layer) {
    if (layer.window_left < 0 && layer.window_right < 0) return "-";
    const std::string left = number_or_dash(layer.window_left, -1);
    return layer.causal ? left : left + "," + number_or_dash(layer.window_right, -1);
}

std::string rotary_text(const ServingLayer& layer) {
    std::string text;
    for (const RotaryStyle style : layer.rotary_styles) {
        if (!text.empty()) text += " or ";
        text += style == RotaryStyle::half_split ? "half_split" : "interleaved";
    }
    return text.empty() ? "-" : fmt::format("{} {}", text, layer.rotary_dim);
}

std::string options_text(const ServingLayer& layer) {
    std::string text;
    for (const auto& [name, given] :
         {std::pair{"softcap", layer.softcap}, std::pair{"alibi", layer.alibi},
          std::pair{"sinks", layer.sinks}, std::pair{"logits", layer.logits != 0}}) {
        if (given) text += std::string(text.empty() ? "" : " ") + name;
    }
    return text.empty() ? "-" : text;
}

// "norms of 4096, 128; gates of 14336": empty where there are none.
std::string rows_text(const ServingModel& model) {
    std::set<int> norms;
    std::set<int> gates;
    for (const ServingNorm& norm : model.norms)
        norms.insert(norm.d);
    for (const ServingGate& gate : model.gates)
        gates.insert(gate.d);
    std::string text;
    if (!norms.empty()) text = fmt::format("norms of {}", fmt::join(norms, ", "));
    if (!gates.empty()) text += fmt::format("; gates of {}", fmt::join(gates, ", "));
    return text;
}

}  // namespace

std::string ServedModel::text() const {
    std::string text =
        printable(fmt::format("{}: {}", file,
                              model.model_type.empty() ? "no model_type" : model.model_type)) +
        "\n";
    Table table({"layers", "part", "count>", "heads>", "kv>", "d_qk>", "d_v>", "window>", "causal",
                 "rotary", "options", "format", "served"});
    for (const ServingLayer& layer : model.layers) {
        table.add({layer.kind, name_of(layer.part), number_or_dash(layer.count, 0),
                   number_or_dash(layer.q_heads, 0), number_or_dash(layer.kv_heads, 0),
                   number_or_dash(layer.head_dim, 0), number_or_dash(layer.v_head_dim, 0),
                   window_text(layer), layer.causal ? "yes" : "no", rotary_text(layer),
                   options_text(layer), name_of(model.dtype),
                   layer.unserved.empty() ? "yes" : "no"});
    }
    text += table.text();
    if (const std::string rows = rows_text(model); !rows.empty()) text += rows + "\n";
    for (const std::string& note : model.notes)
        text += fmt::format("note: {}\n", printable(note));
    return text;
}

nlohmann::ordered_json ServedModel::json() const {
    nlohmann::ordered_json made = nlohmann::ordered_json::parse(json_of(model));
    made["file"] = file;
    made["unserved"] = unserved;
    return made;
}

void ModelOptions::add_to(CLI::App& command) {
    command
        .add_option("--model", file,
                    "A model's config.json: all that serving it asks for on each --arch")
        ->type_name("FILE");
    add_word(command, "--kv-cache", cache, {"paged", "padded", "both"},
             "How the server of --model keeps keys and values (paged)");
    add_format(command, "--format", format, "What --model is served in (its torch_dtype)");
    add_word(command, "--style", style, {"interleaved", "half_split"},
             "Which elements the rotary embedding of --model turns together (its model_type's)");
}

std::optional<ServedModel> ModelOptions::read(const PrewarmTargets& targets,
                                              const LogitsFunction* logits) const {
    if (file.empty()) {
        for (const auto& [option, value] :
             {std::pair{"--kv-cache", &cache}, std::pair{"--format", &format},
              std::pair{"--style", &style}}) {
            if (!value->empty())
                refuse(fmt::format("{} is of a --model, which is missing", option));
        }
        return std::nullopt;
    }
    ServingOptions options;
    options.name = file;
    options.dtype = dtype_named(format);
    if (!style.empty()) {
        options.style = style == "half_split" ? RotaryStyle::half_split : RotaryStyle::interleaved;
    }
    options.logits = logits;
    ServedModel served;
    served.file = file;
    served.model = serving_model(read_text(file, kMaxBytes, "a configuration"), options);
    served.unserved = served.model.unserved;
    for (const std::string& arch : targets.names()) {
        for (const auto& [form, wanted] :
             {std::pair{KvCache::paged, cache != "padded"},
              std::pair{KvCache::padded, cache == "padded" || cache == "both"}}) {
            if (!wanted) continue;
            std::vector<std::string> layers;
            for (std::string& text : serving_specs(served.model, arch, form, &layers))
                served.specs.push_back(std::move(text));
            for (const std::string& why : layers) {
                std::string sentence = fmt::format("{}: {}", file, why);
                const auto& all = served.unserved;
                if (std::find(all.begin(), all.end(), sentence) == all.end())
                    served.unserved.push_back(std::move(sentence));
            }
        }
    }
    return served;
}

}  // namespace jitney::cli
