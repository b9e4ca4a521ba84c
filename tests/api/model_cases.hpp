// Configurations of model types, and what their documentation says that their attention asks for.
#pragma once

#include <string_view>
#include <vector>

#include "jitney/serving.hpp"

namespace jitney::tests {

// One kind of layers.
struct LayerFacts {
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    ServingPart part = ServingPart::decoder;
    int window_left = -1;
    int window_right = -1;
    int rotary_dim = 0;
    bool half_split = false;
    bool interleaved = false;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;

    constexpr LayerFacts half(int dim) const {
        LayerFacts facts = *this;
        facts.rotary_dim = dim;
        facts.half_split = true;
        return facts;
    }
    constexpr LayerFacts pairs(int dim) const {
        LayerFacts facts = *this;
        facts.rotary_dim = dim;
        facts.interleaved = true;
        return facts;
    }
    constexpr LayerFacts window(int left) const {
        LayerFacts facts = *this;
        facts.window_left = left;
        if (part == ServingPart::encoder) facts.window_right = left;
        return facts;
    }
    constexpr LayerFacts capped() const {
        LayerFacts facts = *this;
        facts.softcap = true;
        return facts;
    }
    constexpr LayerFacts sloped() const {
        LayerFacts facts = *this;
        facts.alibi = true;
        return facts;
    }
    constexpr LayerFacts sunk() const {
        LayerFacts facts = *this;
        facts.sinks = true;
        return facts;
    }
    friend bool operator==(const LayerFacts&, const LayerFacts&) = default;
};

constexpr LayerFacts layer(int heads, int kv_heads, int head_dim) {
    return {heads, kv_heads, head_dim};
}
constexpr LayerFacts encoder(int heads, int head_dim) {
    return {heads, heads, head_dim, ServingPart::encoder};
}
constexpr LayerFacts cross(int heads, int kv_heads, int head_dim) {
    return {heads, kv_heads, head_dim, ServingPart::cross};
}

struct ModelCase {
    std::string_view config;  // without a dtype
    std::vector<LayerFacts> layers;
};

// Models that are served whole.
std::vector<ModelCase> decoder_cases();
std::vector<ModelCase> other_cases();  // of several parts, with encoders, and unknown types

}  // namespace jitney::tests
