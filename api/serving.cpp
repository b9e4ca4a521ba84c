#include "jitney/serving.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "operations/kernel_launch.hpp"
#include "operations/model.hpp"
#include "operations/refuse.hpp"
#include "policy/device_facts.hpp"
#include "policy/models/read.hpp"
#include "runtime/device.hpp"

namespace jitney {
namespace {

// Copies the fields that a layer has alike in the public header and in the policy.
template <class To, class From>
To same_of(const From& layer) {
    To made;
    made.kind = layer.kind;
    made.part = static_cast<decltype(made.part)>(layer.part);
    made.count = layer.count;
    made.q_heads = layer.q_heads;
    made.kv_heads = layer.kv_heads;
    made.head_dim = layer.head_dim;
    made.v_head_dim = layer.v_head_dim;
    made.window_left = layer.window_left;
    made.window_right = layer.window_right;
    made.causal = layer.causal;
    made.softcap = layer.softcap;
    made.alibi = layer.alibi;
    made.sinks = layer.sinks;
    made.rotary_dim = layer.rotary_dim;
    made.logits = layer.logits;
    made.unserved = layer.unserved;
    return made;
}

ServingLayer public_layer(const policy::ModelLayer& layer) {
    auto made = same_of<ServingLayer>(layer);
    if (layer.half_split) made.rotary_styles.push_back(RotaryStyle::half_split);
    if (layer.interleaved) made.rotary_styles.push_back(RotaryStyle::interleaved);
    return made;
}

policy::ModelLayer own_layer(const ServingLayer& layer) {
    const auto has = [&layer](RotaryStyle style) {
        return std::ranges::find(layer.rotary_styles, style) != layer.rotary_styles.end();
    };
    auto made = same_of<policy::ModelLayer>(layer);
    made.half_split = has(RotaryStyle::half_split);
    made.interleaved = has(RotaryStyle::interleaved);
    return made;
}

// A model that a caller made, or changed.
void check_layer(const ServingLayer& layer) {
    if (!layer.unserved.empty()) return;
    const bool heads = layer.q_heads > 0 && layer.kv_heads > 0 && layer.head_dim > 0 &&
                       layer.q_heads % layer.kv_heads == 0;
    const bool rotary =
        layer.rotary_dim >= 0 && layer.rotary_dim % 2 == 0 && layer.rotary_dim <= layer.head_dim;
    if (heads && rotary) return;
    checks::refuse(
        "a layer of {} has {} heads, {} KV heads, a head_dim of {} and a rotary_dim of {}: KV "
        "heads divide heads, and rotary_dim is even and at most head_dim",
        layer.kind, layer.q_heads, layer.kv_heads, layer.head_dim, layer.rotary_dim);
}

void check_width(const char* what, int d) {
    if (d < 1) checks::refuse("a {} of the model is of rows of {} elements", what, d);
}

std::string why_not(const ServingLayer& layer, std::string_view arch) {
    if (!layer.unserved.empty()) return layer.unserved;
    return fmt::format(
        "no attention kernel runs them on {}: jitney explain attention --q 1,1,{},{} "
        "--kv 1,1,{},{} --arch {} says why",
        arch, layer.q_heads, layer.head_dim, layer.kv_heads, layer.head_dim, arch);
}

}  // namespace

ServingModel serving_model(std::string_view config_json, const ServingOptions& options) {
    policy::ModelOverrides overrides;
    if (options.dtype) overrides.format = static_cast<int>(*options.dtype);
    if (options.style) overrides.style = static_cast<int>(*options.style);
    if (options.logits != nullptr) overrides.logits = options.logits->digest();
    if (options.dtype && *options.dtype != DType::bf16 && *options.dtype != DType::fp16 &&
        *options.dtype != DType::fp32) {
        checks::refuse("a model is served in bf16, fp16 or fp32, and dtype is another");
    }
    policy::ModelReading reading =
        policy::read_model(config_json, std::string(options.name), overrides);
    ServingModel model;
    model.model_type = std::move(reading.type);
    model.dtype = static_cast<DType>(reading.model.format);
    for (const policy::ModelLayer& layer : reading.model.layers)
        model.layers.push_back(public_layer(layer));
    for (const policy::ModelNorm& norm : reading.model.norms)
        model.norms.push_back({norm.d, norm.residual, norm.center, norm.bias, norm.one_plus});
    for (const policy::ModelGate& gate : reading.model.gates)
        model.gates.push_back({gate.d, static_cast<Activation>(gate.activation)});
    model.notes = std::move(reading.notes);
    model.unserved = std::move(reading.unserved);
    return model;
}

std::vector<std::string> serving_specs(const ServingModel& model, std::string_view arch,
                                       KvCache cache, std::vector<std::string>* unserved_layers) {
    const policy::DeviceFacts facts =
        arch.empty() ? facts_of(runtime::device(0)) : policy::facts_named(arch);
    policy::Model own;
    own.format = static_cast<int>(model.dtype);
    for (const ServingNorm& norm : model.norms) {
        check_width("norm", norm.d);
        own.norms.push_back(
            {norm.d, norm.residual, norm.subtract_mean, norm.bias, norm.one_plus_weight});
    }
    for (const ServingGate& gate : model.gates) {
        check_width("gate", gate.d);
        own.gates.push_back({gate.d, static_cast<int>(gate.activation)});
    }
    std::vector<std::string> unserved;
    for (const ServingLayer& layer : model.layers) {
        check_layer(layer);
        own.layers.push_back(own_layer(layer));
        const bool served =
            layer.unserved.empty() && policy::runs_layer(own, own.layers.back(), facts);
        if (served) continue;
        unserved.push_back(fmt::format("layers of {} are not served: {}", layer.kind,
                                       why_not(layer, facts.arch.text())));
    }
    if (unserved_layers == nullptr && unserved.size() == model.layers.size()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("no layer of the model is served: {}",
                                unserved.empty() ? "it has none"
                                                 : fmt::format("{}", fmt::join(unserved, "; "))));
    }
    const auto form =
        cache == KvCache::padded ? policy::CacheForm::padded : policy::CacheForm::paged;
    std::vector<std::string> texts;
    for (const policy::Spec& spec : policy::model_catalogue(own, form, facts))
        texts.push_back(policy::text_of(spec));
    if (unserved_layers != nullptr) *unserved_layers = std::move(unserved);
    return texts;
}

}  // namespace jitney
