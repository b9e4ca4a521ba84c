#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "api/json_text.hpp"
#include "jitney/serving.hpp"

namespace jitney {
namespace {

std::string json_of(const ServingLayer& layer, DType dtype) {
    std::string styles;
    for (const RotaryStyle style : layer.rotary_styles) {
        if (!styles.empty()) styles += ',';
        styles += style == RotaryStyle::half_split ? "\"half_split\"" : "\"interleaved\"";
    }
    return fmt::format(
        R"({{"kind":{},"part":"{}","count":{},"q_heads":{},"kv_heads":{},"d_qk":{},"d_v":{},)"
        R"("window_left":{},"window_right":{},"causal":{},"rotary_dim":{},"rotary_styles":[{}],)"
        R"("softcap":{},"alibi":{},"sinks":{},"logits":{},"format":"{}","served":{},)"
        R"("reason":{}}})",
        quoted(layer.kind), name_of(layer.part), layer.count, layer.q_heads, layer.kv_heads,
        layer.head_dim, layer.v_head_dim, layer.window_left, layer.window_right, layer.causal,
        layer.rotary_dim, styles, layer.softcap, layer.alibi, layer.sinks, layer.logits != 0,
        name_of(dtype), layer.unserved.empty(), quoted(layer.unserved));
}

std::string json_of(const ServingNorm& norm) {
    return fmt::format(
        R"({{"d":{},"residual":{},"subtract_mean":{},"bias":{},"one_plus_weight":{}}})", norm.d,
        norm.residual, norm.subtract_mean, norm.bias, norm.one_plus_weight);
}

std::string json_of(const ServingGate& gate) {
    constexpr std::array names = {"silu", "gelu", "gelu_tanh", "relu2"};
    return fmt::format(R"({{"d":{},"activation":"{}"}})", gate.d,
                       names.at(static_cast<std::size_t>(gate.activation)));
}

template <class Value>
std::string json_list(const std::vector<Value>& values) {
    std::vector<std::string> texts;
    for (const Value& value : values)
        texts.push_back(json_of(value));
    return fmt::format("[{}]", fmt::join(texts, ","));
}

}  // namespace

const char* name_of(ServingPart part) noexcept {
    switch (part) {
        case ServingPart::encoder:
            return "encoder";
        case ServingPart::cross:
            return "cross";
        case ServingPart::decoder:
            break;
    }
    return "decoder";
}

std::string json_of(const ServingModel& model) {
    std::string layers;
    for (const ServingLayer& layer : model.layers) {
        if (!layers.empty()) layers += ',';
        layers += json_of(layer, model.dtype);
    }
    return fmt::format(
        R"({{"model_type":{},"layers":[{}],"norms":{},"gates":{},"notes":{},"unserved":{}}})",
        quoted(model.model_type), layers, json_list(model.norms), json_list(model.gates),
        quoted_list(model.notes), quoted_list(model.unserved));
}

}  // namespace jitney
