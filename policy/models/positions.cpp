#include "policy/models/positions.hpp"

#include <fmt/format.h>

#include <string>

#include "jitney/error.hpp"
#include "kernel_sources/common/constants.h"
#include "policy/models/names.hpp"

namespace jitney::policy {
namespace {

bool holds(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

std::optional<bool> first_of(const Fields& config, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        if (config.is_boolean(name)) return config.boolean(name);
    }
    return std::nullopt;
}

std::optional<Fields> nested(const Fields& config, std::string_view name) {
    return config.is_object(name) ? config.object(name) : std::nullopt;
}

bool is_rotary(Positions positions) {
    return positions == Positions::half_split || positions == Positions::interleaved;
}

// The positions that the file names in words, where the type leaves that to it.
std::optional<Positions> in_words(const Fields& config, const ModelType& type) {
    for (const char* name : {"position_embedding_type", "position_embedding"}) {
        if (!config.is_text(name)) continue;
        const std::string text = *config.text(name);
        if (holds(text, "alibi")) return Positions::alibi;
        if (holds(text, "rope") && !holds(text, "nope")) return Positions::half_split;
        if (holds(text, "rot")) return Positions::half_split;
        if (holds(text, "relative")) return std::nullopt;  // refused elsewhere
        return Positions::none;
    }
    if (type.positions == Positions::asked) {
        const bool memory = config.boolean("use_mem_rope").value_or(false);
        return memory ? Positions::half_split : Positions::none;
    }
    return std::nullopt;
}

Positions positions_of(const Fields& config, const ModelType& type) {
    const std::optional<Fields> attention = nested(config, "attn_config");
    std::optional<bool> alibi = first_of(config, {"alibi", "use_alibi"});
    if (!alibi && attention) alibi = first_of(*attention, {"alibi"});
    if (alibi.value_or(false)) return Positions::alibi;
    if (attention && first_of(*attention, {"rope"}).value_or(false)) return Positions::half_split;
    if (!first_of(config, {"rotary", "use_rope", "use_rotary"}).value_or(true)) {
        return Positions::none;
    }
    const int hidden = value_of(config, kHiddenNames, kMaxSize).value_or(type.sizes.hidden);
    if (type.alibi_unless_hidden != 0 && hidden != type.alibi_unless_hidden) {
        return Positions::alibi;
    }
    // A type that rotates does so whatever stands there: some write "absolute" all the same.
    if (is_rotary(type.positions)) return type.positions;
    if (const auto words = in_words(config, type)) {
        const bool style_known = type.positions != Positions::unknown || !is_rotary(*words);
        return style_known ? *words : Positions::unknown;
    }
    if (type.positions == Positions::alibi && alibi.has_value()) return Positions::none;
    return type.positions;
}

std::optional<double> share_in(const Fields& config) {
    for (const char* name : {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent",
                             "rotary_emb_fraction", "rope_percentage"}) {
        if (config.has(name)) return config.real(name);
    }
    return std::nullopt;
}

const char* name_of(LayerKind kind) {
    return kind == LayerKind::sliding ? "sliding_attention" : "full_attention";
}

struct Share {
    std::optional<double> share;
    bool whole = false;  // all of the head is rotated, by angles of which some are 0
};

// The share of each head, under any of its names, for all layers or for those of one kind.
Share share_of(const Fields& config, LayerKind kind) {
    Share found;
    for (const char* name : {"rope_parameters", "rope_scaling"}) {
        if (config.has(name) && !config.is_object(name)) config.object(name);  // throws
        for (std::optional<Fields> object = nested(config, name); object;
             object = nested(*object, name_of(kind))) {
            if (const auto share = share_in(*object)) found.share = share;
            if (object->is_text("rope_type") && object->text("rope_type") == "proportional") {
                found.whole = true;
            }
        }
    }
    if (!found.share) found.share = share_in(config);
    return found;
}

int rotary_dim_of(const Fields& config, const ModelType& type, LayerKind kind, int head_dim) {
    const Share share = share_of(config, kind);
    if (share.share && (*share.share <= 0 || *share.share > 1)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the share of each head that {} has rotated is {}, and must be "
                                "above 0 and at most 1",
                                config.file(), *share.share));
    }
    // In proportional embedding the share tells how many angles are not 0. Types with heads of
    // their own in layers that see all keys mean it where they say nothing.
    const bool silent = !config.has("rope_parameters") && !config.has("rope_scaling");
    if (share.whole || (type.global_head_dim != 0 && silent)) return head_dim;
    for (const char* name : {"rotary_dim", "rotary_ndims"}) {
        if (const auto dim = config.integer(name, 1, kMaxSize)) return *dim;
    }
    if (share.share) return static_cast<int>(head_dim * *share.share);
    if (type.rotary_dim != 0) return type.rotary_dim;
    return static_cast<int>(head_dim * type.rotary_share);
}

}  // namespace

LayerPositions layer_positions(const Fields& config, const ModelType& type, LayerKind kind,
                               int head_dim, std::optional<int> style, Findings& findings) {
    LayerPositions result;
    const Positions positions = positions_of(config, type);
    result.alibi = positions == Positions::alibi;
    const bool rotates = is_rotary(positions) || positions == Positions::unknown;
    const bool left_out = type.full_layers_without_rotary && kind == LayerKind::full;
    if (!rotates || left_out || kind == LayerKind::cross || head_dim == 0) return result;
    result.rotary_dim = rotary_dim_of(config, type, kind, head_dim);
    if (result.rotary_dim % 2 != 0 || result.rotary_dim > head_dim) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} rotates {} elements of each head; it must be an even number, "
                                "and at most head_dim, {}",
                                config.file(), result.rotary_dim, head_dim));
    }
    std::optional<bool> interleaved =
        first_of(config, {"rope_interleave", "rope_interleaved", "rotary_interleaved",
                          "rotary_emb_interleaved", "interleaved_rope"});
    if (const auto halves =
            first_of(config, {"is_neox_style", "neox_style", "rope_is_neox_style"})) {
        interleaved = !*halves;
    }
    if (!interleaved && is_rotary(positions)) interleaved = positions == Positions::interleaved;
    if (style) interleaved = *style == kInterleaved;
    result.interleaved = interleaved.value_or(true);
    result.half_split = !interleaved.value_or(false);
    if (!interleaved) {
        findings.note(
            fmt::format("{} does not say whether it rotates, and in which style: both "
                        "are taken, and --style says which one alone",
                        config.file()));
    }
    return result;
}

}  // namespace jitney::policy
