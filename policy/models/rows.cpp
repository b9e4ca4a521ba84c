#include "policy/models/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernel_sources/norm/row_shape.h"
#include "policy/models/names.hpp"

namespace jitney::policy {
namespace {

using List = std::span<const std::string_view>;

// Types, by how their names begin, whose files do not tell it.
//
// Norms multiply by 1 + weight.
constexpr std::array<std::string_view, 9> kOnePlus = {"gemma",      "recurrent_gemma", "vaultgemma",
                                                      "t5gemma",    "shieldgemma",     "nemotron",
                                                      "qwen3_next", "qwen3_5",         "paligemma"};
constexpr std::array<std::string_view, 2> kPlainAfterAll = {"gemma3n", "gemma4"};
// RMSNorm in spite of fields that speak of a layer norm.
constexpr std::array<std::string_view, 8> kRootMeanSquare = {
    "t5", "mt5", "umt5", "longt5", "switch_transformers", "pop2piano", "udop", "chatglm"};
// Norms of each head of q and k.
constexpr std::array<std::string_view, 20> kHeadNorms = {
    "qwen3",      "qwen3_5",  "gemma3",   "gemma4",    "glm4_moe", "cohere",   "exaone4",
    "exaone_moe", "lfm2",     "hunyuan",  "apertus",   "afmoe",    "dots1",    "bailing",
    "step3p5",    "ernie4_5", "stablelm", "persimmon", "phi",      "chameleon"};
// Norms of all heads of q, and of k, together.
constexpr std::array<std::string_view, 5> kWholeNorms = {"olmo2", "olmo3", "olmoe", "flex_olmo",
                                                         "minimax"};
// Feed-forward layers without a gate in spite of RMSNorm.
constexpr std::array<std::string_view, 4> kWithoutGate = {"arcee", "apertus", "t5", "chameleon"};
// Feed-forward layers with a gate in spite of LayerNorm.
constexpr std::array<std::string_view, 5> kGated = {"cohere", "stablelm", "dbrx", "olmo",
                                                    "modernbert"};

constexpr std::array<std::string_view, 9> kGateNames = {"intermediate_size",
                                                        "moe_intermediate_size",
                                                        "shared_expert_intermediate_size",
                                                        "ffn_hidden_size",
                                                        "ffn_dim",
                                                        "d_ff",
                                                        "n_inner",
                                                        "block_ff_dim",
                                                        "expert_intermediate_size"};
constexpr std::array<std::string_view, 7> kActivationNames = {
    "hidden_activation", "hidden_act",   "activation_function", "act_fn",
    "ffn_activation",    "dense_act_fn", "feed_forward_proj"};

bool begins_with_one(std::string_view type, List list) {
    return std::ranges::any_of(list,
                               [type](std::string_view each) { return type.starts_with(each); });
}

bool has_field_of(const Fields& config, std::string_view part) {
    return std::ranges::any_of(config.names(), [&](const std::string& name) {
        return name.find(part) != name.npos && !config.is_null(name);
    });
}

// The two kinds of norms: whether there are such, as far as it is told.
struct NormKinds {
    bool root_mean_square = false;
    bool layer_norm = false;
};

NormKinds kinds_of(const Fields& config, const ModelType& type) {
    if (begins_with_one(type.name, kRootMeanSquare)) return {true, false};
    if (has_field_of(config, "rms")) return {true, false};
    if (has_field_of(config, "layer_norm") || has_field_of(config, "layernorm"))
        return {false, true};
    if (has_field_of(config, "norm_eps")) return {true, true};
    // A file may leave out what is usual for its type.
    const bool turned =
        type.positions == Positions::half_split || type.positions == Positions::interleaved;
    if (type.name.empty()) return {true, true};
    return {turned, !turned};
}

// A size, one or one a layer. Files without it say null, 0 or -1.
std::vector<int> sizes_of(const Fields& config, std::string_view name) {
    if (config.is_list(name))
        return config.integers(name, -1, kMaxSize, 0).value_or(std::vector<int>());
    const double size = config.is_number(name) ? *config.real(name) : 0;
    if (size < 1 || size > kMaxSize) return {};
    return {static_cast<int>(size)};
}

int hidden_size(const Fields& config, const ModelType& type) {
    for (const std::string_view name : kHiddenNames) {
        const std::vector<int> sizes = sizes_of(config, name);
        if (!sizes.empty()) return sizes.front();
    }
    return type.sizes.hidden;
}

std::optional<int> activation_named(std::string_view name) {
    if (name.starts_with("gated-")) name.remove_prefix(6);
    if (name == "silu" || name == "swish" || name == "swiglu") return 0;
    if (name == "gelu" || name == "geglu") return 1;
    if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast" ||
        name == "gelu_tanh")
        return 2;
    if (name == "relu2") return 3;
    return std::nullopt;
}

class RowReader {
  public:
    RowReader(const Fields& config, const ModelType& type, Model& model, Findings& findings)
        : config_(config),
          type_(type),
          model_(model),
          findings_(findings),
          kinds_(kinds_of(config, type)),
          hidden_(hidden_size(config, type)) {}

    void read() {
        if (hidden_ <= 0) {
            findings_.note(fmt::format("{} has no {}: norms and gates are not among the kernels",
                                       config_.file(), told(kHiddenNames)));
            return;
        }
        for (const bool residual : {true, false})
            add_norms(hidden_, residual);
        for (const ModelLayer& layer : model_.layers)
            add_norms_of_heads(layer);
        add_gates();
    }

  private:
    bool is_one_of(List list) const { return begins_with_one(type_.name, list); }

    void add(const ModelNorm& norm) {
        if (std::ranges::find(model_.norms, norm) == model_.norms.end())
            model_.norms.push_back(norm);
    }

    void add_norms(int d, bool residual) {
        const bool one_plus = is_one_of(kOnePlus) && !is_one_of(kPlainAfterAll);
        if (kinds_.root_mean_square) add({d, residual, false, false, one_plus});
        if (!kinds_.layer_norm) return;
        add({d, residual, true, true, one_plus});
        add({d, residual, true, false, one_plus});
    }

    void add_norms_of_heads(const ModelLayer& layer) {
        if (layer.head_dim <= 0) return;
        const bool told = has_field_of(config_, "qk_norm") || has_field_of(config_, "qk_layernorm");
        if (is_one_of(kWholeNorms)) {
            add_norms(layer.q_heads * layer.head_dim, false);
            add_norms(layer.kv_heads * layer.head_dim, false);
        } else if (told || type_.name.empty() || is_one_of(kHeadNorms)) {
            add_norms(layer.head_dim, false);
        }
    }

    // Nothing where the model has no gates.
    std::optional<int> activation() {
        const bool usual = kinds_.root_mean_square && !is_one_of(kWithoutGate);
        for (const std::string_view name : kActivationNames) {
            if (!config_.is_text(name)) continue;
            const std::string value = *config_.text(name);
            if (!usual && !is_one_of(kGated) && !value.starts_with("gated-")) return std::nullopt;
            const auto activation = activation_named(value);
            if (!activation) {
                findings_.note(fmt::format("{} is {}, which no gate here computes",
                                           config_.path_of(name), value));
            }
            return activation;
        }
        if (!usual && !is_one_of(kGated)) return std::nullopt;
        return type_.name.find("gemma") == type_.name.npos ? 0 : 2;
    }

    void add_gates() {
        const auto known = activation();
        if (!known) return;
        std::vector<int> sizes;
        for (const std::string_view name : kGateNames) {
            for (const int size : sizes_of(config_, name))
                sizes.push_back(size);
        }
        // All wide rows have one kernel.
        if (std::ranges::all_of(sizes, [](int size) { return size == 0; })) sizes = {4 * hidden_};
        for (const int size : sizes) {
            const ModelGate gate{size, *known};
            if (size > 0 && std::ranges::find(model_.gates, gate) == model_.gates.end())
                model_.gates.push_back(gate);
        }
    }

    const Fields& config_;
    const ModelType& type_;
    Model& model_;
    Findings& findings_;
    NormKinds kinds_;
    int hidden_;
};

}  // namespace

void read_rows(const Fields& config, const ModelType& type, Model& model, Findings& findings) {
    RowReader(config, type, model, findings).read();
}

}  // namespace jitney::policy
