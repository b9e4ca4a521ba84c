// The specializations to prewarm for serving a model, from the config.json that lies beside its
// weights.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/export.hpp"
#include "jitney/gated_activation.hpp"
#include "jitney/logits.hpp"
#include "jitney/rotary.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

enum class KvCache {
    paged,   // in pages, which any of the three tables names
    padded,  // one tensor, a row of places for each request
};

// A caller may say this instead of the file.
struct ServingOptions {
    std::optional<DType> dtype = {};         // what the model is served in: bf16, fp16 or fp32
    std::optional<RotaryStyle> style = {};   // which elements its rotary embedding turns together
    const LogitsFunction* logits = nullptr;  // of the layers whose scores need one
    std::string_view name = "config.json";   // how sentences call the text
};

enum class ServingPart {
    decoder,  // queries over the keys of their own request, which are kept
    encoder,  // the same, and nothing is kept
    cross,    // queries of a decoder over the keys of an encoder, which are kept
};

// Layers of a model that ask for the same.
struct ServingLayer {
    std::string kind;  // "full_attention", as configurations call it
    ServingPart part = ServingPart::decoder;
    int count = 0;  // of the model's layers; 0: the file does not say
    int q_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;  // of q and k
    int v_head_dim = 0;
    int window_left = -1;  // as in AttentionArgs; -1: all
    int window_right = -1;
    bool causal = true;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;
    int rotary_dim = 0;                      // 0: no rotary embedding
    std::vector<RotaryStyle> rotary_styles;  // both where the file does not tell
    std::uint64_t logits = 0;                // digest of the logits function; 0: none
    std::string unserved;                    // why no kernel here serves them; empty: one does
};

// Norms of a model that ask for the same (rms_norm.hpp): of rows of d elements, with a weight of
// the model's dtype.
struct ServingNorm {
    int d = 0;
    bool residual = false;
    bool subtract_mean = false;
    bool bias = false;
    bool one_plus_weight = false;
};

// Gates of feed-forward layers (gated_activation.hpp).
struct ServingGate {
    int d = 0;
    Activation activation = Activation::silu;
};

struct ServingModel {
    std::string model_type;  // of the part that writes text; empty: the file has none
    DType dtype = DType::bf16;
    std::vector<ServingLayer> layers;
    std::vector<ServingNorm> norms;  // both forms of one where the file does not tell which it is
    std::vector<ServingGate> gates;
    std::vector<std::string> notes;     // what was assumed, and what was passed over
    std::vector<std::string> unserved;  // fields that change a kernel, and are not served
};

// Reads the text of a config.json. Throws Error (invalid_argument) where it describes no model
// whose attention can be told, and says what is missing.
JITNEY_API ServingModel serving_model(std::string_view config_json,
                                      const ServingOptions& options = {});

// The specializations that the served layers, the norms and the gates ask for on `arch` ("sm_90a";
// empty: the first GPU that is here), whatever the batch and the lengths: texts for prewarm().
// Tensors are 16-byte aligned, results are of the model's dtype, and masks are not among it.
// `unserved_layers` receives a sentence for each kind of layers that is not served there; without
// it, a model of which no layer is served is an Error (unsupported). An arch that can't be meant is
// one, too (invalid_argument).
JITNEY_API std::vector<std::string> serving_specs(
    const ServingModel& model, std::string_view arch, KvCache cache = KvCache::paged,
    std::vector<std::string>* unserved_layers = nullptr);

// "decoder"
JITNEY_API const char* name_of(ServingPart part) noexcept;
// The model as jitney_serving_model (jitney.h) gives it, in JSON.
JITNEY_API std::string json_of(const ServingModel& model);

}  // namespace jitney
