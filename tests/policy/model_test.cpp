// What prewarm compiles for a model is what serving it asks for.
#include "operations/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel_sources/common/constants.h"
#include "operations/append_kv/choose.hpp"
#include "operations/merge_states/choose.hpp"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

Model llama_3_8b() {
    Model model;
    model.format = kBf16;
    model.q_heads = 32;
    model.kv_heads = 8;
    model.head_dim = 128;
    model.rotary_dim = 128;
    model.rotary_style = kHalfSplit;
    return model;
}

Model random_model(Random& random) {
    const AttentionProblem shape = random_attention_shape(random);
    Model model;
    model.format = shape.format;
    model.kv_heads = static_cast<int>(random.integer(1, 16));
    model.q_heads = model.kv_heads * static_cast<int>(random.integer(1, 32));
    model.head_dim = shape.head_dim;
    model.rotary_dim =
        random.chance(0.2) ? 0 : 2 * static_cast<int>(random.integer(0, model.head_dim / 2));
    model.rotary_style = random.chance(0.5) ? kHalfSplit : kInterleaved;
    model.window_layers = random.chance(0.5);
    model.full_layers = !model.window_layers || random.chance(0.5);
    model.softcap = random.chance(0.3);
    model.alibi = random.chance(0.3);
    model.sinks = random.chance(0.3);
    return model;
}

// One step of a server: a call of one layer, of lengths as they come.
AttentionProblem random_step(const Model& model, CacheForm cache, Random& random) {
    AttentionProblem p;
    p.format = model.format;
    p.q_heads = model.q_heads;
    p.kv_heads = model.kv_heads;
    p.head_dim = model.head_dim;
    p.causal = true;
    p.window = model.window_layers && (!model.full_layers || random.chance(0.5));
    p.softcap = model.softcap;
    p.alibi = model.alibi;
    p.sinks = model.sinks;
    p.packed = random.chance(0.4);
    // A ragged prefill without a prefix has its keys in a tensor of their own.
    p.paged = cache == CacheForm::paged && !(p.packed && random.chance(0.4));
    p.append = !p.packed && random.chance(0.5);
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
        const AttentionProblem p = random_step(model, cache, random);
        const auto choice = choose_attention(p, device);
        REQUIRE_MESSAGE(choice, text_of(p));
        ask(choice->spec, text_of(p));
        if (choice->work_map) ask(choice->work_map->spec, text_of(p));
        const MergeStatesProblem merge{
            .format = model.format, .rows = p.q_len, .head_dim = model.head_dim};
        if (rank_merge_states(merge, device).accepted()) {
            ask(choose_merge_states(merge, device).spec, text_of(p));
        }
        AppendKvProblem append{.format = model.format,
                               .tokens = p.q_len,
                               .batch = p.batch,
                               .kv_heads = model.kv_heads,
                               .head_dim = model.head_dim,
                               .packed = true,
                               .paged = cache == CacheForm::paged};
        if (model.rotary_dim != 0 && random.chance(0.5)) {
            append.rotary = model.rotary_style == kHalfSplit ? AppendRotary::half_split
                                                             : AppendRotary::interleaved;
            append.rotary_dim = model.rotary_dim;
            append.q_heads = random.chance(0.5) ? model.q_heads : 0;
            append.q_in_place = random.chance(0.5);
        }
        if (rank_append_kv(append, device).accepted()) {
            ask(choose_append_kv(append, device).spec, text_of(p));
        }
        if (model.rotary_dim == 0) continue;
        const RotaryProblem rotary{.format = model.format,
                                   .style = model.rotary_style,
                                   .tokens = p.q_len,
                                   .heads = model.q_heads + model.kv_heads,
                                   .head_dim = model.head_dim,
                                   .rotary_dim = model.rotary_dim,
                                   .in_place = random.chance(0.5)};
        if (rank_rotary(rotary, device).accepted()) {
            ask(choose_rotary(rotary, device).spec, text_of(p));
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
        CHECK(paged.size() == 15);
        CHECK(paged.size() < 16);
        CHECK(model_catalogue(llama_3_8b(), CacheForm::padded, facts).size() == 13);
        // The first calls of a server come first.
        CHECK(paged.front().kernel == KernelId::attn_work_map);
        CHECK(paged.back().kernel == KernelId::attn_merge_states);
    }
}

TEST_CASE("the options of a model are those of its catalogue") {
    Model model = llama_3_8b();
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
    model.softcap = true;
    CHECK(all_have("softcap", 1));
    model.window_layers = true;
    CHECK(!all_have("window", 0));
    CHECK(!all_have("window", 1));
    model.full_layers = false;
    CHECK(all_have("window", 1));
    model.rotary_dim = 0;
    for (const Spec& spec : model_catalogue(model, CacheForm::paged, facts))
        CHECK(spec.kernel != KernelId::rotary_emb);
}

TEST_CASE("a model that nothing can run has an empty catalogue") {
    Model model = llama_3_8b();
    model.head_dim = 1024;
    CHECK(model_catalogue(model, CacheForm::paged, typical_facts({90, 'a'})).empty());
    model.head_dim = 128;
    CHECK(model_catalogue(model, CacheForm::paged, typical_facts({70, 0})).empty());
}

}  // namespace jitney::policy
