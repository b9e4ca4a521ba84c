#include "policy/models/heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "jitney/error.hpp"

namespace jitney::policy {
namespace {

int at(const std::vector<int>& values, std::size_t layer) {
    return values.empty() ? 0 : values[std::min(layer, values.size() - 1)];
}

void take(int& target, int value) {
    if (value != 0) target = value;
}

void take(Heads& target, const Heads& other) {
    take(target.q, other.q);
    take(target.kv, other.kv);
    take(target.dim, other.dim);
    take(target.v_dim, other.v_dim);
}

int number(const Fields& config, std::string_view name, int maximum = kMaxHeads) {
    return config.integer(name, 1, maximum).value_or(0);
}

// The heads of one layer, or of the layers of one kind, under the names that models have for them.
Heads heads_in(const Fields& config) {
    return {number(config, "num_attention_heads"),
            std::max(number(config, "num_key_value_heads"), number(config, "num_attention_groups")),
            number(config, "head_dim", kMaxSize), number(config, "v_head_dim", kMaxSize)};
}

}  // namespace

HeadReader::HeadReader(const Fields& config, const ModelType& type, std::string_view part,
                       Findings& findings)
    : config_(config), type_(type), findings_(findings) {
    hidden_ = value_of(config_, kHiddenNames, kMaxSize);
    if (!hidden_ && config_.is_null("hidden_size")) {
        findings_.lack("hidden_size (it is null)");
    } else if (!hidden_ && type_.sizes.hidden != 0) {
        hidden_ = type_.sizes.hidden;
    }
    read_heads(part);
    read_kv_heads(part);
    read_dims();
    read_overrides();
}

void HeadReader::read_heads(std::string_view part) {
    std::optional<Values> heads;
    if (!part.empty()) {
        for (const std::string& name :
             {std::string(part) + "attention_heads", std::string(part) + "num_attention_heads"}) {
            if (!heads) heads = config_.integers(name, 1, kMaxHeads);
        }
        for (const std::string_view name : kHeadsNames) {
            if (!heads) heads = config_.integers(name, 1, kMaxHeads);
        }
    } else {
        heads = config_.integers("num_attention_heads_per_layer", 1, kMaxHeads);
        if (!heads) heads = values_of(config_, kHeadsNames, kMaxHeads);
    }
    if (heads) {
        q_ = *heads;
    } else if (type_.sizes.heads != 0 && !config_.is_null("num_attention_heads")) {
        q_ = {type_.sizes.heads};
        findings_.note(fmt::format("{} is not in {}: {}, the default of {}",
                                   config_.path_of("num_attention_heads"), config_.file(),
                                   q_.front(), type_.name));
    } else if (type_.refusal.empty()) {
        findings_.lack(config_.path_of(told(kHeadsNames)));
    }
}

void HeadReader::read_kv_heads(std::string_view part) {
    const bool grouped = config_.boolean("new_decoder_architecture").value_or(false);
    const auto nested =
        config_.is_object("attn_config") ? config_.object("attn_config") : std::optional<Fields>();
    const bool one = (!grouped && config_.boolean("multi_query").value_or(type_.multi_query)) ||
                     config_.text("attention_head_type") == "multiquery" ||
                     (nested && nested->text("attn_type") == "multiquery_attention");
    if (one) {
        kv_ = {1};
        return;
    }
    std::optional<Values> heads;
    if (!part.empty()) {
        heads = config_.integers(std::string(part) + "num_key_value_heads", 1, kMaxHeads);
    }
    if (!heads) heads = config_.integers("num_key_value_heads_per_layer", 1, kMaxHeads);
    // Groups count where there are some.
    std::vector<std::string_view> names(kKvHeadsNames.begin(), kKvHeadsNames.end());
    if (!config_.boolean("multi_query_attention").value_or(true)) {
        std::erase(names, "multi_query_group_num");
    }
    if (!config_.boolean("group_query_attention").value_or(true)) {
        std::erase(names, "num_query_groups");
    }
    if (!heads) heads = values_of(config_, names, kMaxHeads);
    if (!heads && nested) heads = nested->integers("kv_n_heads", 1, kMaxHeads);
    if (heads) {
        kv_ = *heads;
    } else if (!says_null(config_, kKvHeadsNames) && type_.sizes.kv_heads != 0) {
        kv_ = {type_.sizes.kv_heads};
        findings_.note(fmt::format("{} is not in {}: {}, the default of {}",
                                   config_.path_of("num_key_value_heads"), config_.file(),
                                   kv_.front(), type_.name));
    }
}

// Types of the table may have another quantity under one of the later names.
std::optional<HeadReader::Values> HeadReader::named_dims() const {
    if (type_.name.empty()) return values_of(config_, kHeadDimNames, kMaxSize);
    for (const std::string_view name : kHeadDimNames) {
        if (const auto dims = config_.integers(name, 1, kMaxSize)) return dims;
    }
    return std::nullopt;
}

void HeadReader::read_dims() {
    const auto nope = config_.integer("qk_nope_head_dim", 0, kMaxSize);
    const auto rope = config_.integer("qk_rope_head_dim", 0, kMaxSize);
    if (nope && rope) {
        dim_ = {*nope + *rope};
    } else if (const auto dims = named_dims()) {
        dim_ = *dims;
    } else if (const auto all = config_.integer("projection_size", 1, kMaxSize);
               all && !q_.empty()) {
        if (*all % q_.front() != 0) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("projection_size of {} is {}, which its {} heads do not divide",
                                    config_.file(), *all, q_.front()));
        }
        dim_ = {*all / q_.front()};
    } else if (const auto attention = config_.integer("attention_hidden_size", 1, kMaxSize)) {
        hidden_ = attention;
    } else if (type_.sizes.head_dim != 0) {
        dim_ = {type_.sizes.head_dim};
    }
    if (dim_.empty() && !hidden_) {
        if (type_.refusal.empty())
            findings_.lack(config_.path_of("head_dim, or " + told(kHiddenNames)));
    } else if (dim_.empty() && type_.name.empty() && !q_.empty()) {
        findings_.note(fmt::format("{} has no head_dim: taken as hidden_size over heads, {} / {}",
                                   config_.file(), *hidden_, q_.front()));
    }
    if (const auto dims = config_.integers("v_head_dim", 1, kMaxSize)) v_dim_ = {*dims};
}

void HeadReader::read_overrides() {
    sliding_.q = std::max(number(config_, "swa_num_attention_heads"),
                          number(config_, "num_sliding_attention_heads"));
    sliding_.kv = number(config_, "swa_num_key_value_heads");
    sliding_.dim = number(config_, "swa_head_dim", kMaxSize);
    sliding_.v_dim = number(config_, "swa_v_head_dim", kMaxSize);
    if (config_.is_object("attention_other_setting")) {
        const Fields other = *config_.object("attention_other_setting");
        if (other.text("attention_type") == "sliding_attention") take(sliding_, heads_in(other));
    }
    global_.dim = number(config_, "global_head_dim", kMaxSize);
    // K without a projection of its own has other KV heads, where the type makes that a choice.
    if (config_.boolean("attention_k_eq_v").value_or(type_.global_head_dim == 0)) {
        global_.kv = number(config_, "num_global_key_value_heads");
    }
    if (config_.is_object("per_layer_config")) {
        const Fields layers = *config_.object("per_layer_config");
        for (const std::string& name : layers.names()) {
            std::size_t layer = 0;
            const auto [end, fault] =
                std::from_chars(name.data(), name.data() + name.size(), layer);
            if (fault != std::errc() || end != name.data() + name.size() || layer > kMaxHeads) {
                config_.refuse_value("per_layer_config", "an object whose names are layers");
            }
            layers_[layer] = heads_in(*layers.object(name));
        }
    } else if (global_.dim == 0) {
        global_.dim = type_.global_head_dim;
    }
    if (!config_.is_list("block_configs")) return;
    std::size_t layer = 0;
    for (const Fields& block : config_.objects("block_configs")) {
        if (const auto attention = block.object("attention")) {
            layers_[layer] = heads_in(*attention);
            groups_[layer] = number(*attention, "n_heads_in_group");
        }
        ++layer;
    }
}

void HeadReader::check(const Heads& heads) const {
    if (heads.q % heads.kv == 0) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} num_attention_heads and {} num_key_value_heads, which must "
                            "divide them",
                            config_.file(), heads.q, heads.kv));
}

void HeadReader::check_lists(std::size_t layers) const {
    const std::array<Names, 3> all = {Names(kHeadsNames), Names(kKvHeadsNames),
                                      Names(kHeadDimNames)};
    for (const Names names : all) {
        for (const std::string_view name : names) {
            if (!config_.is_list(name)) continue;
            const auto values = config_.integers(name, 1, kMaxSize);
            if (values && values->size() == layers) continue;
            config_.refuse_value(name,
                                 fmt::format("a number, or one for each of the {} layers", layers));
        }
    }
}

std::size_t HeadReader::listed() const {
    return std::max({q_.size(), kv_.size(), dim_.size(), std::size_t{1}});
}

Heads HeadReader::of(std::size_t layer, LayerKind kind) const {
    Heads heads{at(q_, layer), at(kv_, layer), at(dim_, layer), at(v_dim_, layer)};
    if (kind == LayerKind::sliding) take(heads, sliding_);
    if (kind == LayerKind::full) take(heads, global_);
    if (const auto own = layers_.find(layer); own != layers_.end()) take(heads, own->second);
    if (const auto group = groups_.find(layer); group != groups_.end() && group->second != 0) {
        heads.kv = heads.q / group->second;
    }
    if (heads.q == 0) return heads;
    if (heads.kv == 0) heads.kv = heads.q;
    check(heads);
    if (heads.dim == 0 && hidden_) {
        if (*hidden_ % heads.q != 0) {
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("{} has no head_dim, and a hidden_size of {}, which its {} "
                                    "num_attention_heads do not divide",
                                    config_.file(), *hidden_, heads.q));
        }
        heads.dim = *hidden_ / heads.q;
    }
    if (heads.v_dim == 0) heads.v_dim = heads.dim;
    return heads;
}

}  // namespace jitney::policy
