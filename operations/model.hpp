// What serving one transformer asks of the kernels, whatever comes in: the catalogue that prewarm
// compiles.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

// What its layers have in common, and what some of them have.
struct Model {
    int format = 0;  // a jitney::Format
    int q_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int rotary_dim = 0;       // 0: no rotary embedding
    int rotary_style = 0;     // a jitney::RotaryStyle
    bool full_layers = true;  // layers in which a query sees all keys before it
    bool window_layers = false;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;
};

enum class CacheForm : std::uint8_t {
    paged,   // in pages, which any of the three tables names
    padded,  // one tensor, a row of places for each request
};

// Causal attention without masks on 16-byte aligned tensors: ragged batches over the keys that come
// with them and over the cache, batches whose requests have the same number of queries over the
// cache, and those that append new keys to it; appending of ragged batches, rotated on the way or
// not; rotary embedding of q and k; merging of partial results. In the order in which a server is
// likely to need them; empty where no attention kernel runs the model.
std::vector<Spec> model_catalogue(const Model& model, CacheForm cache, const DeviceFacts& facts);

}  // namespace jitney::policy
