#include "operations/model.hpp"

#include "kernel_sources/common/constants.h"
#include "operations/append_kv/choose.hpp"
#include "operations/attention/choose.hpp"
#include "operations/merge_states/choose.hpp"
#include "operations/rotary/choose.hpp"

namespace jitney::policy {
namespace {

AttentionProblem layer_of(const Model& model, bool window) {
    AttentionProblem layer;
    layer.format = model.format;
    layer.q_heads = model.q_heads;
    layer.kv_heads = model.kv_heads;
    layer.head_dim = model.head_dim;
    layer.causal = true;
    layer.window = window;
    layer.softcap = model.softcap;
    layer.alibi = model.alibi;
    layer.sinks = model.sinks;
    return layer;
}

class Catalogue {
  public:
    explicit Catalogue(const DeviceFacts& facts) : facts_(facts) {}

    void add(const std::vector<Spec>& specs) {
        for (const Spec& spec : specs)
            add_once(all_, spec);
    }

    void add_layer(AttentionProblem layer, CacheForm cache) {
        layer.packed = true;
        layer.paged = cache == CacheForm::paged;
        add(attention_catalogue(layer, facts_));
        layer.paged = false;
        add(attention_catalogue(layer, facts_));
        layer.packed = false;
        layer.paged = cache == CacheForm::paged;
        add(attention_catalogue(layer, facts_));
        layer.append = true;
        add(attention_catalogue(layer, facts_));
    }

    void add_rotary(const Model& model) {
        RotaryProblem problem;
        problem.format = model.format;
        problem.style = model.rotary_style;
        problem.heads = model.q_heads + model.kv_heads;
        problem.head_dim = model.head_dim;
        problem.rotary_dim = model.rotary_dim;
        problem.tokens = 1;
        for (const bool in_place : {false, true}) {
            problem.in_place = in_place;
            if (rank_rotary(problem, facts_).accepted()) add({choose_rotary(problem, facts_).spec});
        }
    }

    void add_append(const Model& model, CacheForm cache) {
        AppendKvProblem problem;
        problem.format = model.format;
        problem.tokens = 1;
        problem.batch = 1;
        problem.kv_heads = model.kv_heads;
        problem.head_dim = model.head_dim;
        problem.packed = true;
        problem.paged = cache == CacheForm::paged;
        const auto add_problem = [&] {
            if (rank_append_kv(problem, facts_).accepted()) {
                add({choose_append_kv(problem, facts_).spec});
            }
        };
        add_problem();
        if (model.rotary_dim == 0) return;
        problem.rotary =
            model.rotary_style == kHalfSplit ? AppendRotary::half_split : AppendRotary::interleaved;
        problem.rotary_dim = model.rotary_dim;
        problem.q_heads = model.q_heads;
        add_problem();
    }

    void add_merge(const Model& model) {
        MergeStatesProblem problem;
        problem.format = model.format;
        problem.head_dim = model.head_dim;
        problem.rows = 1;
        if (rank_merge_states(problem, facts_).accepted()) {
            add({choose_merge_states(problem, facts_).spec});
        }
    }

    std::vector<Spec> all() const { return all_; }

  private:
    DeviceFacts facts_;
    std::vector<Spec> all_;
};

}  // namespace

std::vector<Spec> model_catalogue(const Model& model, CacheForm cache, const DeviceFacts& facts) {
    Catalogue catalogue(facts);
    if (model.full_layers) catalogue.add_layer(layer_of(model, false), cache);
    if (model.window_layers) catalogue.add_layer(layer_of(model, true), cache);
    if (catalogue.all().empty()) return {};
    catalogue.add_append(model, cache);
    if (model.rotary_dim != 0) catalogue.add_rotary(model);
    catalogue.add_merge(model);
    return catalogue.all();
}

}  // namespace jitney::policy
