#include "policy/models/read.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "jitney/error.hpp"
#include "kernel_sources/common/constants.h"
#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"
#include "policy/models/layers.hpp"
#include "policy/models/names.hpp"
#include "policy/models/quantization.hpp"
#include "policy/models/rows.hpp"
#include "policy/models/strangers.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
    throw Error(ErrorCode::invalid_argument, sentence);
}

std::string type_name(const Fields& config) {
    return config.is_text("model_type") ? *config.text("model_type") : std::string();
}

bool has_heads(const Fields& config) {
    return std::any_of(kHeadsNames.begin(), kHeadsNames.end(),
                       [&config](std::string_view name) { return config.has(name); });
}

// The part that writes text, and what it lies in, the outermost first.
struct TextPart {
    std::vector<Fields> chain;
    std::string name;  // of the part; empty: the file as a whole

    const Fields& config() const { return chain.back(); }
};

TextPart text_part(const Fields& whole) {
    TextPart part{{whole}, ""};
    for (bool deeper = true; deeper;) {
        deeper = false;
        const Fields& config = part.config();
        const bool whole_type = find_model_type(type_name(config)) != nullptr;
        for (const char* name : {"text_config", "llm_config", "language_config", "thinker_config",
                                 "lm_config", "decoder", "decoder_config"}) {
            if (!config.has(name)) continue;
            const bool of_a_pair = std::string_view(name).starts_with("decoder");
            if (of_a_pair && (whole_type || !config.is_object(name))) continue;
            const Fields inner = *config.object(name);
            // Some repeat the fields of the part outside of it.
            if (has_heads(config) && !has_heads(inner)) continue;
            part.name = config.path_of(name);
            part.chain.push_back(inner);
            deeper = true;
            break;
        }
    }
    return part;
}

// The row of the table; one without a name where there is none.
ModelType type_of(const TextPart& part) {
    for (auto config = part.chain.rbegin(); config != part.chain.rend(); ++config) {
        const std::string name = type_name(*config);
        if (name.empty()) continue;
        if (const ModelType* own = find_model_type(name)) return *own;
        if (const ModelType* text = find_model_type(text_type_of(name))) return *text;
        if (config == part.chain.rbegin()) return {};
    }
    return {};
}

std::optional<std::string> dtype_name(const TextPart& part) {
    for (auto config = part.chain.rbegin(); config != part.chain.rend(); ++config) {
        for (const char* field : {"torch_dtype", "dtype"}) {
            if (auto name = config->text(field)) return name;
        }
    }
    return std::nullopt;
}

int format_of(const TextPart& part, const ModelOverrides& overrides, Findings& findings) {
    const std::string& file = part.config().file();
    int format = kBf16;
    if (overrides.format) {
        format = *overrides.format;
    } else if (std::optional<std::string> name = dtype_name(part)) {
        if (name->starts_with("torch.")) name->erase(0, 6);
        if (*name == "bfloat16") {
            format = kBf16;
        } else if (*name == "float16" || *name == "half") {
            format = kFp16;
        } else if (*name == "float32" || *name == "float") {
            format = kFp32;
        } else {
            refuse(
                fmt::format("torch_dtype of {} is \"{}\", and must be bfloat16, float16 or "
                            "float32; --format says what the model is served in",
                            file, *name));
        }
    } else {
        findings.lack("dtype or torch_dtype (--format says what the model is served in)");
    }
    if (format == kFp32) {
        findings.note(
            fmt::format("{} is served in float32, which the scalar kernels compute, without tensor "
                        "cores; --format bf16 or fp16 where it is served in one of them",
                        file));
    }
    return format;
}

// Parts that are no part of the one that writes text: towers of images and sound, speakers.
void note_other_parts(const TextPart& part, Findings& findings) {
    for (std::size_t i = 0; i < part.chain.size(); ++i) {
        const Fields& config = part.chain[i];
        for (const std::string& name : config.names()) {
            if (!config.is_object(name)) continue;
            const bool taken = i + 1 < part.chain.size() &&
                               config.path_of(name) + "." == part.chain[i + 1].path_of("");
            const Fields inner = *config.object(name);
            const bool is_model = has_heads(inner) || inner.has("hidden_size") ||
                                  (inner.has("model_type") && type_name(inner) != "");
            const bool of_the_type = name == "encoder" || name == "decoder";
            if (taken || !is_model || (of_the_type && part.name.empty())) continue;
            if (name == "attn_config" || name == "ffn_config") continue;
            findings.note(
                fmt::format("{} is passed over: it is another part than the one that "
                            "writes text",
                            config.path_of(name)));
        }
    }
}

void require_nothing_missing(const TextPart& part, const ModelType& type,
                             const Findings& findings) {
    if (findings.missing.empty()) return;
    const std::string known =
        type.name.empty() && !type_name(part.config()).empty()
            ? fmt::format(", and its model_type, {}, is not known here", type_name(part.config()))
            : std::string();
    refuse(fmt::format("{} has no {}: it must be the config.json of a transformer{}",
                       part.config().file(), fmt::join(findings.missing, ", and no "), known));
}

// The layers that ask for the same become one.
std::vector<ModelLayer> merged(const std::vector<ModelLayer>& layers) {
    std::vector<ModelLayer> kinds;
    for (const ModelLayer& layer : layers) {
        const auto same = std::find_if(kinds.begin(), kinds.end(), [&layer](ModelLayer kind) {
            kind.count = layer.count;
            return kind == layer;
        });
        if (same == kinds.end()) {
            kinds.push_back(layer);
        } else {
            same->count += layer.count;
        }
    }
    return kinds;
}

}  // namespace

ModelReading read_model(std::string_view text, std::string file, const ModelOverrides& overrides) {
    const Fields whole = Fields::parse(std::move(file), text);
    const TextPart part = text_part(whole);
    const ModelType type = type_of(part);
    Findings findings;
    ModelReading reading;
    reading.type = type.name.empty() ? type_name(part.config()) : std::string(type.name);
    if (!type.attends) {
        refuse(
            fmt::format("{} has no layers of attention, as it is a {}: there is nothing to "
                        "compile for it",
                        whole.file(), type.name));
    }
    if (type.name.empty() && !reading.type.empty()) {
        findings.note(
            fmt::format("model_type {} is not known here: its fields alone count", reading.type));
    }
    reading.model.format = format_of(part, overrides, findings);
    const std::vector<ModelLayer> layers = read_layers(part.config(), type, overrides, findings);
    require_nothing_missing(part, type, findings);
    reading.model.layers = merged(layers);
    read_rows(part.config(), type, reading.model, findings);
    for (const Fields& config : part.chain)
        read_quantization(config, findings);
    if (type.refusal.empty()) find_strangers(part.config(), findings);
    note_other_parts(part, findings);
    reading.notes = std::move(findings.notes);
    reading.unserved = std::move(findings.unserved);
    return reading;
}

}  // namespace jitney::policy
