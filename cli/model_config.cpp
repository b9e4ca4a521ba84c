#include "cli/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/errors.hpp"
#include "cli/json_object.hpp"
#include "cli/problem.hpp"
#include "kernel_sources/common/constants.h"

namespace jitney::cli {

namespace {

constexpr int kMaxHeads = 65536;
constexpr int kMaxSize = 1 << 30;

// Models of several parts describe the one that writes text in an object of its own.
JsonObject text_model(const JsonObject& config) {
    if (!config.integer("num_attention_heads", 1, kMaxHeads)) {
        if (auto part = config.object("text_config")) return *part;
    }
    return config;
}

int required(const JsonObject& config, const std::string& name, int maximum) {
    const auto value = config.integer(name, 1, maximum);
    if (!value) {
        refuse(fmt::format("{} has no {}: it must be the config.json of a transformer",
                           config.file(), name));
    }
    return *value;
}

int format_of(const JsonObject& config, const JsonObject& whole, const std::string& given) {
    if (!given.empty()) return static_cast<int>(dtype_of(given));
    std::optional<std::string> name;
    for (const JsonObject* object : {&config, &whole}) {
        for (const char* field : {"torch_dtype", "dtype"}) {
            if (!name) name = object->text(field);
        }
    }
    if (!name) {
        refuse(config.file() +
               " has neither dtype nor torch_dtype: say by --format what the model "
               "is served in");
    }
    if (*name == "bfloat16") return kBf16;
    if (*name == "float16") return kFp16;
    if (*name == "float32") return kFp32;
    refuse(
        fmt::format("torch_dtype of {} is {}, and must be bfloat16, float16 or float32; --format "
                    "says what the model is served in",
                    config.file(), nlohmann::json(*name).dump()));
}

void set_heads(policy::Model& model, const JsonObject& config) {
    if (config.integer("kv_lora_rank", 0, kMaxSize)) {
        refuse(config.file() +
               " has a kv_lora_rank: attention to a compressed cache, whose keys and values are of "
               "different sizes, has no kernel here");
    }
    model.q_heads = required(config, "num_attention_heads", kMaxHeads);
    auto kv_heads = config.integer("num_key_value_heads", 1, kMaxHeads);
    if (!kv_heads && config.boolean("multi_query").value_or(false) &&
        !config.boolean("new_decoder_architecture").value_or(false)) {
        kv_heads = 1;
    }
    if (!kv_heads) kv_heads = config.integer("num_kv_heads", 1, kMaxHeads);
    model.kv_heads = kv_heads.value_or(model.q_heads);
    if (model.q_heads % model.kv_heads != 0) {
        refuse(
            fmt::format("{} has {} num_attention_heads and {} num_key_value_heads, which must "
                        "divide them",
                        config.file(), model.q_heads, model.kv_heads));
    }
    if (const auto head_dim = config.integer("head_dim", 1, kMaxSize)) {
        model.head_dim = *head_dim;
        return;
    }
    const int hidden = required(config, "hidden_size", kMaxSize);
    if (hidden % model.q_heads != 0) {
        refuse(
            fmt::format("{} has no head_dim, and a hidden_size of {}, which its {} "
                        "num_attention_heads do not divide",
                        config.file(), hidden, model.q_heads));
    }
    model.head_dim = hidden / model.q_heads;
}

// Which layers see a window alone. Where the file has a window and does not say which layers have
// it, both kinds are meant: models differ in what they leave out.
void set_layers(policy::Model& model, const JsonObject& config) {
    const bool window = config.integer("sliding_window", 0, kMaxSize).value_or(0) > 0 &&
                        config.boolean("use_sliding_window").value_or(true);
    model.window_layers = window;
    const auto layers = config.texts("layer_types");
    if (!layers || layers->empty()) return;
    const auto has = [&layers](const char* type) {
        return std::find(layers->begin(), layers->end(), type) != layers->end();
    };
    for (const std::string& type : *layers) {
        if (type != "full_attention" && type != "sliding_attention" && type != "linear_attention") {
            refuse(
                fmt::format("layer_types of {} holds {}, and may hold full_attention, "
                            "sliding_attention and linear_attention",
                            config.file(), nlohmann::json(type).dump()));
        }
    }
    model.full_layers = has("full_attention");
    model.window_layers = has("sliding_attention");
    if (model.window_layers && !window) {
        refuse(config.file() + " has layers of sliding_attention, and no sliding_window");
    }
    if (!model.full_layers && !model.window_layers) {
        refuse(config.file() + " has no layers of attention");
    }
}

bool has_alibi(const JsonObject& config) {
    const auto nested = config.object("attn_config");
    return config.boolean("alibi").value_or(false) ||
           (nested && nested->boolean("alibi").value_or(false)) ||
           config.text("position_embedding_type") == "alibi" ||
           config.text("model_type") == "bloom";
}

bool has_rotary(const JsonObject& config) {
    const auto positions = config.text("position_embedding_type");
    return !positions || positions->find("rot") != std::string::npos ||
           positions->find("rope") != std::string::npos;
}

// The share of each head that is rotated, under any of its names.
double rotary_share(const JsonObject& config) {
    const auto parameters = config.object("rope_parameters");
    std::optional<double> share;
    if (parameters) share = parameters->real("partial_rotary_factor");
    for (const char* name : {"partial_rotary_factor", "rotary_pct", "rope_pct"}) {
        if (!share) share = config.real(name);
    }
    if (share && (*share <= 0 || *share > 1)) {
        refuse(
            fmt::format("the share of each head that {} has rotated is {}, and must be above 0 "
                        "and at most 1",
                        config.file(), *share));
    }
    return share.value_or(1);
}

void set_rotary(policy::Model& model, const JsonObject& config, const std::string& style) {
    if (model.alibi || !has_rotary(config)) return;
    model.rotary_dim = config.integer("rotary_dim", 1, kMaxSize)
                           .value_or(static_cast<int>(model.head_dim * rotary_share(config)));
    if (model.rotary_dim % 2 != 0 || model.rotary_dim > model.head_dim) {
        refuse(
            fmt::format("{} rotates {} elements of each head; it must be an even number, and at "
                        "most head_dim, {}",
                        config.file(), model.rotary_dim, model.head_dim));
    }
    constexpr std::array kInterleavedTypes = {"chatglm", "codegen", "cohere", "cohere2",
                                              "glm",     "glm4",    "gptj"};
    const std::string type = config.text("model_type").value_or("");
    const bool interleaved = std::find(kInterleavedTypes.begin(), kInterleavedTypes.end(), type) !=
                             kInterleavedTypes.end();
    model.rotary_style = interleaved ? kInterleaved : kHalfSplit;
    if (!style.empty()) model.rotary_style = style == "half_split" ? kHalfSplit : kInterleaved;
}

}  // namespace

policy::Model read_model_config(const std::string& path, const ModelOverrides& overrides) {
    const JsonObject whole = JsonObject::read(path);
    const JsonObject config = text_model(whole);
    policy::Model model;
    set_heads(model, config);
    model.format = format_of(config, whole, overrides.format);
    set_layers(model, config);
    const auto cap = config.real("attn_logit_softcapping");
    if (cap && *cap <= 0) {
        refuse(fmt::format("attn_logit_softcapping of {} is {}, and must be positive", path, *cap));
    }
    model.softcap = cap.has_value();
    model.alibi = has_alibi(config);
    model.sinks = config.text("model_type") == "gpt_oss";
    set_rotary(model, config, overrides.style);
    return model;
}

}  // namespace jitney::cli
