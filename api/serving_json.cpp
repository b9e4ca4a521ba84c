#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "api/json_text.hpp"
#include "jitney/serving.hpp"

namespace jitney {
namespace {

std::string json_of(const ServingLayer& layer, DType dtype) {
    const std::string styles = json_list(layer.rotary_styles, [](RotaryStyle style) {
        return quoted(style == RotaryStyle::half_split ? "half_split" : "interleaved");
    });
    return fmt::format(
        R"({{"kind":{},"part":"{}","count":{},"q_heads":{},"kv_heads":{},"d_qk":{},"d_v":{},)"
        R"("window_left":{},"window_right":{},"causal":{},"rotary_dim":{},"rotary_styles":{},)"
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
std::string list_of(const std::vector<Value>& values) {
    return json_list(values, [](const Value& value) { return json_of(value); });
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
    const auto layer = [&model](const ServingLayer& each) { return json_of(each, model.dtype); };
    return fmt::format(
        R"({{"model_type":{},"layers":{},"norms":{},"gates":{},"notes":{},"unserved":{}}})",
        quoted(model.model_type), json_list(model.layers, layer), list_of(model.norms),
        list_of(model.gates), quoted_list(model.notes), quoted_list(model.unserved));
}

}  // namespace jitney
