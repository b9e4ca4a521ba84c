// What prewarm compiles for a model is what serving it asks for.
#include "operations/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel_sources/common/constants.h"
#include "operations/append_kv/choose.hpp"
#include "operations/merge_states/choose.hpp"
#include "operations/rotary/choose.hpp"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

Model llama_3_8b() {
    ModelLayer layer;
    layer.kind = "full_attention";
    layer.q_heads = 32;
    layer.kv_heads = 8;
    layer.head_dim = layer.v_head_dim = 128;
    layer.rotary_dim = 128;
    layer.half_split = true;
    return {kBf16, {layer}};
}

ModelLayer random_layer(Random& random, int head_dim) {
    ModelLayer layer;
    layer.part = static_cast<LayerPart>(random.integer(0, 2));
    layer.causal = layer.part == LayerPart::decoder;
    layer.kv_heads = static_cast<int>(random.integer(1, 16));
    layer.q_heads = layer.kv_heads * static_cast<int>(random.integer(1, 32));
    layer.head_dim = layer.v_head_dim = head_dim;
    layer.rotary_dim =
        random.chance(0.2) ? 0 : 2 * static_cast<int>(random.integer(0, layer.head_dim / 2));
    layer.half_split = random.chance(0.5);
    layer.interleaved = !layer.half_split || random.chance(0.2);
    if (random.chance(0.5)) layer.window_left = 100;
    layer.softcap = random.chance(0.3);
    layer.alibi = random.chance(0.3);
    layer.sinks = random.chance(0.3);
    return layer;
}

Model random_model(Random& random) {
    const AttentionProblem shape = random_attention_shape(random);
    Model model;
    model.format = shape.format;
    for (std::int64_t layers = random.integer(1, 3); layers > 0; --layers) {
        // Of one model, some layers may have other heads.
        const int head_dim =
            random.chance(0.7) ? shape.head_dim : random_attention_shape(random).head_dim;
        model.layers.push_back(random_layer(random, head_dim));
    }
    return model;
}

bool is_aligned(const Model& model, const ModelLayer& layer) {
    return layer.head_dim * (model.format == kFp32 ? 4 : 2) % 16 == 0;
}

// One step of a server: a call of one layer, of lengths as they come.
AttentionProblem random_step(const Model& model, const ModelLayer& layer, CacheForm cache,
                             Random& random) {
    AttentionProblem p;
    p.format = model.format;
    p.q_heads = layer.q_heads;
    p.kv_heads = layer.kv_heads;
    p.head_dim = layer.head_dim;
    p.causal = layer.causal;
    p.aligned = is_aligned(model, layer);
    p.window = layer.window();
    p.softcap = layer.softcap;
    p.alibi = layer.alibi;
    p.sinks = layer.sinks;
    p.packed = random.chance(0.4);
    // A ragged prefill without a prefix has its keys in a tensor of their own, and so has whatever
    // keeps none.
    p.paged = cache == CacheForm::paged && layer.part != LayerPart::encoder &&
              !(p.packed && random.chance(0.4));
    p.append = layer.part == LayerPart::decoder && !p.packed && random.chance(0.5);
    p.batch_invariant = random.chance(0.2);
    const int rows = 4096;
    p.q_len = random.chance(0.4) ? 1 : random_count(random, rows);
    if (p.packed) p.q_len = random_count(random, 1 << 20);
    if (p.append) p.q_len = random.chance(0.5) ? 1 : static_cast<int>(random.integer(1, 64));
    p.batch = random_count(random, 512);
    p.kv_len = random_count(random, 1 << 20);
    return p;
}

bool is_attention(const Spec& spec) {
    return spec.kernel != KernelId::rotary_emb && spec.kernel != KernelId::attn_work_map &&
           spec.kernel != KernelId::attn_merge_states && spec.kernel != KernelId::append_kv;
}

bool contains(const std::vector<Spec>& specs, const Spec& spec) {
    return std::find(specs.begin(), specs.end(), spec) != specs.end();
}

void check_steps(const Model& model, CacheForm cache, const DeviceFacts& facts, Random& random) {
    const std::vector<Spec> catalogue = model_catalogue(model, cache, facts);
    REQUIRE(!catalogue.empty());
    for (const Spec& spec : catalogue)
        REQUIRE(std::count(catalogue.begin(), catalogue.end(), spec) == 1);
    const auto ask = [&](const Spec& spec, const std::string& problem) {
        REQUIRE_MESSAGE(contains(catalogue, spec), text_of(spec) << " for " << problem);
    };
    DeviceFacts device = facts;
    for (int step = 0; step < 300; ++step) {
        device.sm_count = random_count(random, 1000);
        const ModelLayer& layer =
            model.layers[static_cast<std::size_t>(step) % model.layers.size()];
        const AttentionProblem p = random_step(model, layer, cache, random);
        const auto choice = choose_attention(p, device);
        REQUIRE_MESSAGE(choice, text_of(p));
        ask(choice->spec, text_of(p));
        if (choice->work_map) ask(choice->work_map->spec, text_of(p));
        const bool half = layer.half_split && (!layer.interleaved || random.chance(0.5));
        const RotaryProblem rotary{.format = model.format,
                                   .style = half ? kHalfSplit : kInterleaved,
                                   .tokens = p.q_len,
                                   .heads = layer.q_heads + layer.kv_heads,
                                   .head_dim = layer.head_dim,
                                   .rotary_dim = layer.rotary_dim,
                                   .in_place = random.chance(0.5),
                                   .aligned = is_aligned(model, layer)};
        if (layer.rotary_dim != 0 && rank_rotary(rotary, device).choice.has_value()) {
            ask(rank_rotary(rotary, device).choice.value().spec, text_of(p));
        }
        if (layer.part == LayerPart::encoder) continue;
        const MergeStatesProblem merge{.format = model.format,
                                       .rows = p.q_len,
                                       .head_dim = layer.head_dim,
                                       .aligned = is_aligned(model, layer)};
        if (rank_merge_states(merge, device).choice.has_value()) {
            ask(rank_merge_states(merge, device).choice.value().spec, text_of(p));
        }
        AppendKvProblem append{.format = model.format,
                               .tokens = p.q_len,
                               .batch = p.batch,
                               .kv_heads = layer.kv_heads,
                               .head_dim = layer.head_dim,
                               .packed = true,
                               .paged = cache == CacheForm::paged,
                               .aligned = is_aligned(model, layer)};
        if (layer.rotary_dim != 0 && random.chance(0.5)) {
            append.rotary = half ? AppendRotary::half_split : AppendRotary::interleaved;
            append.rotary_dim = layer.rotary_dim;
            append.q_heads = random.chance(0.5) ? layer.q_heads : 0;
            append.q_in_place = random.chance(0.5);
        }
        if (rank_append_kv(append, device).choice.has_value()) {
            ask(rank_append_kv(append, device).choice.value().spec, text_of(p));
        }
    }
}

}  // namespace

TEST_CASE("serving a model asks for nothing that its catalogue has not") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int models = 0; models < 100; ++models) {
        const Model model = random_model(random);
        const DeviceFacts facts = random_facts(random);
        CAPTURE(text_of(facts));
        check_steps(model, random.chance(0.5) ? CacheForm::paged : CacheForm::padded, facts,
                    random);
    }
    for (const char* name : {"sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"})
        check_steps(llama_3_8b(), CacheForm::paged, typical_facts(parse_arch(name).value()),
                    random);
}

TEST_CASE("a Llama-3-8B server needs fewer than 16 kernels") {
    for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
        CAPTURE(name);
        const DeviceFacts facts = typical_facts(parse_arch(name).value());
        const auto paged = model_catalogue(llama_3_8b(), CacheForm::paged, facts);
        // On Hopper one kernel takes ragged prefill, however long, and another ragged decode.
        CHECK(paged.size() == 15);
        CHECK(paged.size() < 16);
        CHECK(model_catalogue(llama_3_8b(), CacheForm::padded, facts).size() == 13);
        // The first calls of a server come first.
        CHECK(paged.front().kernel == KernelId::attn_work_map);
        CHECK(paged.back().kernel == KernelId::attn_merge_states);
    }
}

TEST_CASE("the options of a layer are those of its kernels") {
    Model model = llama_3_8b();
    ModelLayer& layer = model.layers[0];
    const DeviceFacts facts = typical_facts({90, 'a'});
    const auto all_have = [&](const char* constant, int value) {
        for (const Spec& spec : model_catalogue(model, CacheForm::paged, facts)) {
            if (!is_attention(spec)) continue;
            if (value_of(spec, constant) != value) return false;
        }
        return true;
    };
    CHECK(all_have("window", 0));
    CHECK(all_have("softcap", 0));
    CHECK_FALSE(all_have("causal", 0));
    layer.softcap = true;
    CHECK(all_have("softcap", 1));
    layer.window_left = 4095;
    CHECK(all_have("window", 1));
    layer.window_left = -1;
    layer.rotary_dim = 0;
    for (const Spec& spec : model_catalogue(model, CacheForm::paged, facts))
        CHECK(spec.kernel != KernelId::rotary_emb);
    layer.part = LayerPart::encoder;
    layer.causal = false;
    CHECK(all_have("causal", 0));
    CHECK(all_have("kv", kDenseKv));
    for (const Spec& spec : model_catalogue(model, CacheForm::paged, facts))
        CHECK(spec.kernel != KernelId::append_kv);
}

TEST_CASE("layers that nothing can run, or that are not served, have no kernels") {
    const DeviceFacts facts = typical_facts({90, 'a'});
    Model model = llama_3_8b();
    const std::size_t all = model_catalogue(model, CacheForm::paged, facts).size();
    model.layers.push_back(model.layers[0]);
    model.layers[1].head_dim = model.layers[1].v_head_dim = 1024;
    CHECK_FALSE(runs_layer(model, model.layers[1], facts));
    CHECK(model_catalogue(model, CacheForm::paged, facts).size() == all);
    model.layers[0].unserved = "for a reason";
    CHECK(model_catalogue(model, CacheForm::paged, facts).empty());
    CHECK(model_catalogue(llama_3_8b(), CacheForm::paged, typical_facts({70, 0})).empty());
}

}  // namespace jitney::policy
