// The specializations that serving one transformer asks for, whatever comes in: the catalogue that
// prewarm compiles.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/device_facts.hpp"
#include "policy/models/model.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

enum class CacheForm : std::uint8_t {
    paged,   // in pages, which any of the three tables names
    padded,  // one tensor, a row of places for each request
};

// Attention without masks on 16-byte aligned tensors. Of decoders: ragged batches over the keys
// that come with them and over the cache, batches whose requests have the same number of queries
// over the cache, and those that append new keys to it; appending of ragged batches, rotated on the
// way or not; rotary embedding of q and k; merging of partial results. Of encoders: ragged batches
// and others over their own keys, and rotary embedding. Nothing for layers that are not served, or
// that no attention kernel runs. Of the whole model: norms and gates, whose rows have no gaps that
// break the alignment and whose results are in its format. In the order in which a server is likely
// to need them.
std::vector<Spec> model_catalogue(const Model& model, CacheForm cache, const DeviceFacts& facts);

// Whether an attention kernel runs the layers on such a GPU.
bool runs_layer(const Model& model, const ModelLayer& layer, const DeviceFacts& facts);

}  // namespace jitney::policy
