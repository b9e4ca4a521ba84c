#include "operations/model.hpp"

#include <algorithm>

#include "kernel_sources/common/constants.h"
#include "operations/append_kv/choose.hpp"
#include "operations/attention/choose.hpp"
#include "operations/gated_activation/choose.hpp"
#include "operations/merge_states/choose.hpp"
#include "operations/rms_norm/choose.hpp"
#include "operations/rotary/choose.hpp"

namespace jitney::policy {
namespace {

// Heads lie one behind the other: where one is no multiple of 16 bytes, the next is not aligned.
bool rows_are_aligned(const Model& model, const ModelLayer& layer) {
    const int bytes = model.format == kFp32 ? 4 : 2;
    return layer.head_dim * bytes % 16 == 0;
}

AttentionProblem problem_of(const Model& model, const ModelLayer& layer) {
    AttentionProblem problem;
    problem.format = model.format;
    problem.q_heads = layer.q_heads;
    problem.kv_heads = layer.kv_heads;
    problem.head_dim = layer.head_dim;
    problem.causal = layer.causal;
    problem.aligned = rows_are_aligned(model, layer);
    problem.window = layer.window();
    problem.softcap = layer.softcap;
    problem.alibi = layer.alibi;
    problem.sinks = layer.sinks;
    problem.logits = layer.logits;
    return problem;
}

std::vector<AppendRotary> styles_of(const ModelLayer& layer) {
    std::vector<AppendRotary> styles;
    if (layer.rotary_dim == 0) return styles;
    if (layer.half_split) styles.push_back(AppendRotary::half_split);
    if (layer.interleaved) styles.push_back(AppendRotary::interleaved);
    return styles;
}

class Catalogue {
  public:
    Catalogue(const Model& model, CacheForm cache, const DeviceFacts& facts)
        : model_(model), paged_(cache == CacheForm::paged), facts_(facts) {}

    void add_attention(AttentionProblem problem, LayerPart part) {
        const bool paged = paged_ && part != LayerPart::encoder;
        for (const bool packed : {true, false}) {
            problem.packed = packed;
            problem.paged = paged;
            add(attention_catalogue(problem, facts_));
            // A ragged batch sees the keys that come with it, too.
            if (packed && paged) {
                problem.paged = false;
                add(attention_catalogue(problem, facts_));
            }
        }
        if (part != LayerPart::decoder) return;
        problem.append = true;
        add(attention_catalogue(problem, facts_));
    }

    void add_append(const ModelLayer& layer) {
        if (layer.part == LayerPart::encoder) return;
        AppendKvProblem problem;
        problem.format = model_.format;
        problem.aligned = rows_are_aligned(model_, layer);
        problem.tokens = 1;
        problem.batch = 1;
        problem.kv_heads = layer.kv_heads;
        problem.head_dim = layer.head_dim;
        problem.packed = true;
        problem.paged = paged_;
        add_once(all_, rank_append_kv(problem, facts_).choice);
        problem.rotary_dim = layer.rotary_dim;
        problem.q_heads = layer.q_heads;
        for (const AppendRotary style : styles_of(layer)) {
            problem.rotary = style;
            add_once(all_, rank_append_kv(problem, facts_).choice);
        }
    }

    void add_rotary(const ModelLayer& layer) {
        RotaryProblem problem;
        problem.format = model_.format;
        problem.aligned = rows_are_aligned(model_, layer);
        problem.heads = layer.q_heads + layer.kv_heads;
        problem.head_dim = layer.head_dim;
        problem.rotary_dim = layer.rotary_dim;
        for (const AppendRotary style : styles_of(layer)) {
            problem.style = style == AppendRotary::half_split ? kHalfSplit : kInterleaved;
            add(rotary_catalogue(problem, facts_));
        }
    }

    void add_merge(const ModelLayer& layer) {
        if (layer.part == LayerPart::encoder) return;
        MergeStatesProblem problem;
        problem.format = model_.format;
        problem.aligned = rows_are_aligned(model_, layer);
        problem.head_dim = layer.head_dim;
        problem.rows = 1;
        add_once(all_, rank_merge_states(problem, facts_).choice);
    }

    // Weights have the model's format.
    void add_norm(const ModelNorm& norm) {
        RmsNormProblem problem;
        problem.format = problem.weight = model_.format;
        problem.rows = 1;
        problem.d = norm.d;
        problem.residual = norm.residual;
        problem.center = norm.center;
        problem.bias = norm.bias;
        problem.one_plus = norm.one_plus;
        add_once(all_, rank_rms_norm(problem, facts_).choice);
    }

    void add_gate(const ModelGate& gate) {
        GatedActivationProblem problem;
        problem.format = model_.format;
        problem.rows = 1;
        problem.d = gate.d;
        problem.activation = gate.activation;
        add_once(all_, rank_gated_activation(problem, facts_).choice);
    }

    std::vector<Spec> all() const { return all_; }

  private:
    void add(const std::vector<Spec>& specs) {
        for (const Spec& spec : specs)
            add_once(all_, spec);
    }

    const Model& model_;
    bool paged_;
    DeviceFacts facts_;
    std::vector<Spec> all_;
};

}  // namespace

bool runs_layer(const Model& model, const ModelLayer& layer, const DeviceFacts& facts) {
    AttentionProblem problem = problem_of(model, layer);
    problem.batch = problem.q_len = problem.kv_len = 1;
    return choose_attention(problem, facts).has_value();
}

std::vector<Spec> model_catalogue(const Model& model, CacheForm cache, const DeviceFacts& facts) {
    std::vector<ModelLayer> served;
    std::copy_if(model.layers.begin(), model.layers.end(), std::back_inserter(served),
                 [&](const ModelLayer& layer) {
                     return layer.unserved.empty() && runs_layer(model, layer, facts);
                 });
    Catalogue catalogue(model, cache, facts);
    for (const ModelLayer& layer : served)
        catalogue.add_attention(problem_of(model, layer), layer.part);
    for (const ModelLayer& layer : served)
        catalogue.add_append(layer);
    for (const ModelLayer& layer : served)
        catalogue.add_rotary(layer);
    for (const ModelLayer& layer : served)
        catalogue.add_merge(layer);
    if (served.empty()) return {};
    for (const ModelNorm& norm : model.norms)
        catalogue.add_norm(norm);
    for (const ModelGate& gate : model.gates)
        catalogue.add_gate(gate);
    return catalogue.all();
}

}  // namespace jitney::policy
