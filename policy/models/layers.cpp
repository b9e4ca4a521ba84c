#include "policy/models/layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "jitney/error.hpp"
#include "policy/models/heads.hpp"
#include "policy/models/layer_kinds.hpp"
#include "policy/models/names.hpp"
#include "policy/models/positions.hpp"

namespace jitney::policy {
namespace {

bool has_architecture(const Fields& config, std::string_view part) {
    if (!config.is_list("architectures")) return false;
    const std::vector<std::string> names = *config.texts("architectures");
    return std::any_of(names.begin(), names.end(),
                       [part](const std::string& name) { return name.find(part) != name.npos; });
}

bool has_architecture(const Fields& config, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&config](std::string_view part) { return has_architecture(config, part); });
}

// The family of a type that is not in the table, where the file tells.
std::optional<Family> told_family(const Fields& config) {
    if (config.boolean("is_encoder_decoder").value_or(false)) return Family::encoder_decoder;
    if (has_architecture(config, {"ForMaskedLM", "ForImageClassification", "VisionModel"}))
        return Family::encoder;
    // The sizes of a picture in the place of a vocabulary's.
    if (config.has("patch_size") && config.has("image_size") && !config.has("vocab_size"))
        return Family::encoder;
    const auto says = [&config](const char* name) { return config.has(name); };
    constexpr std::array kSaying = {"is_decoder", "is_causal", "use_bidirectional_attention"};
    if (std::any_of(kSaying.begin(), kSaying.end(), says) ||
        has_architecture(config, {"CausalLM", "LMHeadModel", "ForConditionalGeneration"})) {
        return Family::decoder;
    }
    return std::nullopt;
}

// Queries see keys before and behind them.
bool sees_both_ways(const Fields& config, Family family) {
    if (family == Family::encoder) {
        return !config.boolean("is_decoder").value_or(false) &&
               !config.boolean("causal").value_or(false);
    }
    if (config.is_text("use_bidirectional_attention")) {
        return config.text("use_bidirectional_attention") == "all";
    }
    return config.boolean("use_bidirectional_attention").value_or(false) ||
           !config.boolean("is_causal").value_or(true);
}

// One part of a model: its encoder, or its decoder.
class PartReader {
  public:
    PartReader(const Fields& config, const ModelType& type, std::string_view prefix,
               const ModelOverrides& overrides, Findings& findings)
        : config_(config),
          type_(type),
          prefix_(prefix),
          overrides_(overrides),
          findings_(findings),
          heads_(config, type, prefix, findings),
          windows_(window_of(config, type)) {}

    // Self-attention.
    std::vector<ModelLayer> layers(bool both_ways) {
        LayerKinds kinds = layer_kinds(config_, type_);
        set_count(kinds);
        if (kinds.counted) heads_.check_lists(kinds.layers.size());
        if (kinds.windows_of_some) {
            findings_.note(
                fmt::format("{} has a window, and does not say which layers have it: "
                            "kernels with a window and without one are taken",
                            config_.file()));
        }
        std::map<std::string, int> passed;
        std::vector<ModelLayer> layers;
        for (std::size_t i = 0; i < kinds.layers.size(); ++i) {
            const KindOfLayer& kind = kinds.layers[i];
            if (kind.kind == LayerKind::passed) {
                ++passed[kind.name];
                continue;
            }
            ModelLayer layer = shape(i, kind);
            layer.count = kinds.counted ? 1 : 0;
            see(layer, i, kind.kind, both_ways);
            layers.push_back(std::move(layer));
        }
        note_passed(passed);
        return layers;
    }

    // Queries of this part's layers over the keys of an encoder.
    ModelLayer cross() {
        const KindOfLayer kind{LayerKind::cross, "cross_attention"};
        ModelLayer layer = shape(0, kind);
        layer.count = std::max(count(), 0);
        see(layer, 0, kind.kind, false);
        return layer;
    }

    int count() const {
        for (const std::string& name :
             {std::string(prefix_) + "layers", std::string(prefix_) + "num_hidden_layers"}) {
            if (!prefix_.empty() && config_.is_number(name))
                return *config_.integer(name, 0, kMaxHeads);
        }
        return layer_count(config_, type_);
    }

  private:
    // Layers of one kind are as many as a type of two parts says for this one, and as the lists of
    // heads have where nothing else tells.
    void set_count(LayerKinds& kinds) const {
        const bool alike = std::all_of(
            kinds.layers.begin(), kinds.layers.end(),
            [&kinds](const KindOfLayer& each) { return each.kind == kinds.layers.front().kind; });
        if (!alike) return;
        const auto length =
            prefix_.empty() ? heads_.listed() : static_cast<std::size_t>(std::max(count(), 1));
        if (prefix_.empty() && kinds.layers.size() >= length) return;
        kinds.layers.resize(length, kinds.layers.front());
        kinds.counted = kinds.counted || heads_.listed() > 1;
    }

    ModelLayer shape(std::size_t at, const KindOfLayer& kind) const {
        const Heads heads = heads_.of(at, kind.kind);
        ModelLayer layer;
        layer.kind = kind.name == "attention" ? "full_attention" : kind.name;
        layer.q_heads = heads.q;
        layer.kv_heads = heads.kv;
        layer.head_dim = heads.dim;
        layer.v_head_dim = heads.v_dim;
        return layer;
    }

    // Sets what the queries see, and how: all but the shape.
    void see(ModelLayer& layer, std::size_t at, LayerKind kind, bool both_ways) {
        const bool cross = kind == LayerKind::cross;
        layer.part = cross ? LayerPart::cross : both_ways ? LayerPart::encoder : LayerPart::decoder;
        layer.causal = !both_ways && !cross;
        if (kind == LayerKind::sliding && windows_) {
            const int keys = (*windows_)[std::min(at, windows_->size() - 1)];
            layer.window_left = both_ways ? (type_.half_windows ? keys : keys / 2) : keys - 1;
            if (both_ways) layer.window_right = layer.window_left;
        }
        const LayerPositions positions =
            layer_positions(config_, type_, kind, layer.head_dim, overrides_.style, findings_);
        layer.alibi = positions.alibi && !cross;
        layer.rotary_dim = positions.rotary_dim;
        layer.interleaved = positions.interleaved && positions.rotary_dim != 0;
        layer.half_split = positions.half_split && positions.rotary_dim != 0;
        layer.softcap = softcap();
        layer.sinks = sinks(kind);
        layer.unserved = refusal(layer, kind);
    }

    bool softcap() const {
        for (const char* name :
             {"attn_logit_softcapping", "attn_logit_softcap", "max_attn_value"}) {
            if (config_.is_null(name)) return false;
            const auto cap = config_.real(name);
            if (cap && *cap <= 0) {
                throw Error(ErrorCode::invalid_argument,
                            fmt::format("{} of {} is {}, and must be positive", name,
                                        config_.file(), *cap));
            }
            if (cap) return true;
        }
        return type_.softcap > 0;
    }

    bool sinks(LayerKind kind) const {
        if (kind == LayerKind::cross) return false;
        const bool sliding = kind == LayerKind::sliding;
        const char* const field =
            sliding ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias";
        if (const auto said = config_.boolean(field)) return *said;
        return type_.sinks == Sinks::all || (type_.sinks == Sinks::sliding && sliding);
    }

    // Why no kernel serves it; empty where one does. A logits function of the caller's serves what
    // changes the scores alone.
    std::string refusal(ModelLayer& layer, LayerKind kind) const {
        if (!type_.refusal.empty()) return std::string(type_.refusal);
        if (const auto rank = config_.integer("kv_lora_rank", 0, kMaxSize); rank.value_or(0) > 0) {
            return fmt::format(
                "its kv_lora_rank is {}: keys and values lie in one compressed "
                "cache, which no kernel here reads",
                *rank);
        }
        if (kind == LayerKind::other) {
            return fmt::format("{} is a kind of attention that is not known here", layer.kind);
        }
        if (layer.v_head_dim != layer.head_dim) {
            return fmt::format(
                "v_head_dim is {} and head_dim {}: no kernel here takes values of "
                "another size than keys",
                layer.v_head_dim, layer.head_dim);
        }
        const std::string scores = score_function(layer, kind);
        if (scores.empty()) return "";
        layer.logits = overrides_.logits;
        if (layer.logits != 0) return "";
        return scores + ", which takes a logits function: --logits compiles with yours";
    }

    std::string score_function(const ModelLayer& layer, LayerKind kind) const {
        if (kind == LayerKind::chunked) {
            const auto chunk = config_.integer("attention_chunk_size", 1, kMaxSize);
            return fmt::format("a query sees the keys of its own chunk{} alone",
                               chunk ? fmt::format(" of {}", *chunk) : "");
        }
        if (layer.part == LayerPart::cross) return "";
        if (!type_.bias.empty()) {
            return fmt::format("a learned bias ({}) is added to the scores", type_.bias);
        }
        const auto positions = config_.is_text("position_embedding_type")
                                   ? config_.text("position_embedding_type")
                                   : std::nullopt;
        if (positions && positions->starts_with("relative_key")) {
            return fmt::format(
                "scores depend on positions by products (position_embedding_type {})", *positions);
        }
        return "";
    }

    void note_passed(const std::map<std::string, int>& passed) const {
        for (const auto& [name, layers] : passed) {
            findings_.note(
                layers == 1 ? fmt::format("1 layer of {} has no attention: it is passed over", name)
                            : fmt::format("{} layers of {} have no attention: they are passed "
                                          "over",
                                          layers, name));
        }
    }

    const Fields& config_;
    const ModelType& type_;
    std::string_view prefix_;
    const ModelOverrides& overrides_;
    Findings& findings_;
    HeadReader heads_;
    std::optional<std::vector<int>> windows_;
};

void append(std::vector<ModelLayer>& all, std::vector<ModelLayer> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::vector<ModelLayer> both_parts(const Fields& config, const ModelType& type,
                                   const ModelOverrides& overrides, Findings& findings) {
    const bool apart = config.is_object("encoder") && config.is_object("decoder");
    const Fields encoder = apart ? *config.object("encoder") : config;
    const Fields decoder = apart ? *config.object("decoder") : config;
    std::vector<ModelLayer> layers;
    PartReader reader(encoder, type, "encoder_", overrides, findings);
    append(layers, reader.layers(true));
    const bool alone = !config.boolean("is_encoder_decoder").value_or(true) ||
                       has_architecture(config, "EncoderModel");
    if (alone) return layers;
    PartReader writer(decoder, type, "decoder_", overrides, findings);
    append(layers, writer.layers(false));
    layers.push_back(writer.cross());
    return layers;
}

}  // namespace

std::vector<ModelLayer> read_layers(const Fields& config, const ModelType& type,
                                    const ModelOverrides& overrides, Findings& findings) {
    const std::optional<Family> told = type.name.empty() ? told_family(config) : type.family;
    const Family family = told.value_or(Family::decoder);
    if (family == Family::encoder_decoder) return both_parts(config, type, overrides, findings);
    PartReader reader(config, type, "", overrides, findings);
    std::vector<ModelLayer> layers = reader.layers(sees_both_ways(config, family));
    if (!told && !layers.empty()) {
        findings.note(
            fmt::format("{} does not say whether its queries see the keys behind them: kernels for "
                        "both are taken (\"is_causal\" in the file says which alone)",
                        config.file()));
        append(layers, reader.layers(true));
    }
    if (config.boolean("add_cross_attention").value_or(false)) layers.push_back(reader.cross());
    if (layers.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} has no layers of attention: there is nothing to compile for it "
                                "({})",
                                config.file(), fmt::join(findings.notes, "; ")));
    }
    if (config.text_is("use_bidirectional_attention", "vision")) {
        findings.note(
            fmt::format("{} lets the elements of an image see each other both ways: that "
                        "takes a mask, and kernels with masks are not among these",
                        config.file()));
    }
    return layers;
}

}  // namespace jitney::policy
