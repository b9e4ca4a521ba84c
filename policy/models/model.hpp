// A model as far as its attention goes: the layers, each kind once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitney::policy {

enum class LayerPart : std::uint8_t {
    decoder,  // queries over the keys of their own request, which are kept
    encoder,  // the same, and nothing is kept
    cross,    // queries of a decoder over the keys of an encoder, which are kept
};

// Layers of a model that ask for the same.
struct ModelLayer {
    std::string kind;  // "full_attention", as configurations call it
    LayerPart part = LayerPart::decoder;
    int count = 0;  // of the model's layers; 0: not known
    int q_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;  // of q and k
    int v_head_dim = 0;
    int window_left = -1;  // keys before and behind a query's own that it sees; -1: all
    int window_right = -1;
    bool causal = true;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;
    int rotary_dim = 0;        // 0: no rotary embedding
    bool interleaved = false;  // its style; both where that is not known
    bool half_split = false;
    std::uint64_t logits = 0;  // digest of a logits function of the caller's; 0: none
    std::string unserved;      // why no kernel here serves them; empty: one does

    bool window() const noexcept { return window_left >= 0 || window_right >= 0; }
    friend bool operator==(const ModelLayer&, const ModelLayer&) = default;
};

struct Model {
    int format = 0;  // a jitney::Format
    std::vector<ModelLayer> layers;
};

}  // namespace jitney::policy
