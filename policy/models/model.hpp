// A model as far as its attention, its norms and its gates go: each kind once.
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

// A norm of rows of `d` elements, with a weight.
struct ModelNorm {
    int d = 0;
    bool residual = false;  // x + residual, which is written, too
    bool center = false;    // LayerNorm
    bool bias = false;
    bool one_plus = false;  // times 1 + weight

    friend bool operator==(const ModelNorm&, const ModelNorm&) = default;
};

// The gate of a feed-forward layer, of rows of `d` elements.
struct ModelGate {
    int d = 0;
    int activation = 0;  // a jitney::GateFunction

    friend bool operator==(const ModelGate&, const ModelGate&) = default;
};

struct Model {
    int format = 0;  // a jitney::Format
    std::vector<ModelLayer> layers;
    std::vector<ModelNorm> norms = {};
    std::vector<ModelGate> gates = {};
};

}  // namespace jitney::policy
