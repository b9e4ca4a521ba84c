// What is told of configurations that are not served, or that can't be meant; what they are where
// all is well, tests/api/serving_models_test.cpp asks.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "jitney/error.hpp"
#include "kernel_sources/common/constants.h"
#include "policy/models/read.hpp"

namespace jitney::policy {
namespace {

ModelReading read(const std::string& config, const ModelOverrides& overrides = {.format = kBf16}) {
    return read_model(config, "config.json", overrides);
}

// The fields of a model that is served, and some more.
std::string with(const std::string& fields) {
    return R"({"model_type":"llama","hidden_size":4096,"num_attention_heads":32,)"
           R"("num_key_value_heads":8)" +
           (fields.empty() ? "" : "," + fields) + "}";
}

bool holds(const std::vector<std::string>& sentences, const std::string& part) {
    return std::any_of(sentences.begin(), sentences.end(), [&part](const std::string& sentence) {
        return sentence.find(part) != sentence.npos;
    });
}

std::string refusal_of(const std::string& config,
                       const ModelOverrides& overrides = {.format = kBf16}) {
    try {
        read(config, overrides);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
        return error.what();
    }
    return "accepted";
}

#define CHECK_REFUSED(config, part) \
    CHECK_THROWS_WITH_AS(read(config), doctest::Contains(part), Error)

// Every kind of layers is unserved, with such a reason.
void check_unserved(const std::string& config, const std::string& reason) {
    INFO("config: ", config);
    const ModelReading reading = read(config);
    REQUIRE(!reading.model.layers.empty());
    for (const ModelLayer& layer : reading.model.layers) {
        INFO("reason: ", layer.unserved);
        CHECK(layer.unserved.find(reason) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("latent attention and other kinds that no kernel computes are named") {
    check_unserved(
        R"({"model_type":"deepseek_v3","hidden_size":7168,"num_attention_heads":128,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128})",
        "compressed cache");
    check_unserved(R"({"model_type":"deepseek_v2"})", "compressed cache");
    check_unserved(R"({"model_type":"longformer"})", "choice of keys");
    check_unserved(R"({"model_type":"deberta-v2"})", "positions by learned products");
    check_unserved(with(R"("kv_lora_rank":512)"), "kv_lora_rank is 512");
    check_unserved(with(R"("v_head_dim":96)"), "v_head_dim is 96 and head_dim 128");
    check_unserved(with(R"("layer_types":["indexed_attention"])"), "indexed_attention");
    const ModelReading mimo = read(
        R"({"model_type":"mimo_v2_flash","hidden_size":4096,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":192,"v_head_dim":128,"swa_num_key_value_heads":8,"num_hidden_layers":12,"sliding_window":128,"add_swa_attention_sink_bias":true,"add_full_attention_sink_bias":false})");
    REQUIRE(mimo.model.layers.size() == 2);
    for (const ModelLayer& layer : mimo.model.layers) {
        CHECK(layer.sinks == layer.window());
        CHECK(layer.kv_heads == (layer.window() ? 8 : 4));
        CHECK(layer.head_dim == 192);
        CHECK(layer.v_head_dim == 128);
        CHECK(layer.unserved != "");
    }
}

TEST_CASE("scores that take a logits function are served by the caller's") {
    const std::string t5 =
        R"({"model_type":"t5","d_model":768,"d_kv":64,"num_heads":12,"num_layers":12,"relative_attention_num_buckets":32})";
    const ModelReading bare = read(t5);
    REQUIRE(bare.model.layers.size() == 3);
    for (const ModelLayer& layer : bare.model.layers) {
        CHECK(layer.q_heads == 12);
        CHECK(layer.head_dim == 64);
        CHECK(layer.causal == (layer.part == LayerPart::decoder));
        CHECK((layer.unserved == "") == (layer.part == LayerPart::cross));
        CHECK(layer.logits == 0);
    }
    for (const ModelLayer& layer : read(t5, {.format = kBf16, .logits = 77}).model.layers) {
        CHECK(layer.unserved == "");
        CHECK(layer.logits == (layer.part == LayerPart::cross ? 0u : 77u));
    }
    const std::string llama4 =
        R"({"model_type":"llama4","text_config":{"model_type":"llama4_text","hidden_size":5120,"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"num_hidden_layers":48,"attention_chunk_size":8192}})";
    for (const ModelLayer& layer : read(llama4).model.layers) {
        const bool chunked = layer.kind == "chunked_attention";
        CHECK((layer.unserved != "") == chunked);
        CHECK(layer.count == (chunked ? 36 : 12));
        CHECK(layer.interleaved == chunked);  // the others do not rotate
        CHECK_FALSE(layer.half_split);
    }
    check_unserved(R"({"model_type":"bert","position_embedding_type":"relative_key"})",
                   "relative_key");
}

TEST_CASE("fields that change kernels and are not served are named") {
    check_unserved(R"({"model_type":"phi3small"})", "choice of keys");
    const auto named = [](const std::string& fields, const std::string& part) {
        INFO("fields: ", fields);
        const ModelReading reading = read(with(fields));
        CHECK(holds(reading.unserved, part));
        CHECK(reading.model.layers.size() == 1);  // attention is served all the same
        CHECK(reading.model.layers[0].unserved == "");
    };
    named(R"("blocksparse_block_size":64)", "blocksparse_block_size");
    named(R"("dense_attention_every_n_layers":2)", "dense_attention_every_n_layers");
    named(
        R"("quantization_config":{"quant_method":"compressed-tensors","kv_cache_scheme":{"num_bits":8,"type":"float","strategy":"tensor"}})",
        "quantization_config.kv_cache_scheme");
    named(R"("quantization_config":{"quant_method":"modelopt","kv_cache_quant_algo":"FP8"})",
          "kv_cache_quant_algo");
    named(R"("quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]})",
          "weight_block_size");
    named(R"("quantization_config":{"quant_method":"fbgemm_fp8"})", "a scale a row");
    named(
        R"("quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float","strategy":"channel"},"input_activations":{"strategy":"token"}}}})",
        "channel of the weight and a token of x");
    named(R"("head_dim_of_odd_layers":96)", "head_dim_of_odd_layers");
    named(R"("num_local_heads":4)", "num_local_heads");
    const auto noted = [](const std::string& fields, const std::string& part) {
        INFO("fields: ", fields);
        const ModelReading reading = read(with(fields));
        CHECK(holds(reading.notes, part));
        CHECK(reading.unserved.empty());
    };
    noted(R"("quantization_config":{"quant_method":"fp8","activation_scheme":"dynamic"})",
          "--linear");
    noted(
        R"("quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float","strategy":"tensor"},"input_activations":{"strategy":"tensor"}}}})",
        "--linear");
    noted(R"("quantization_config":{"quant_method":"awq","bits":4})", "awq");
    noted(
        R"("quantization_config":{"quant_method":"compressed-tensors","kv_cache_scheme":null,"config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int"}}}})",
        "compressed-tensors");
}

TEST_CASE("what was assumed or passed over is said") {
    CHECK(holds(read(with(R"("vision_config":{"hidden_size":1152})")).notes, "vision_config"));
    CHECK(holds(read(with(""), {.format = kFp32}).notes, "scalar kernels"));
    CHECK_FALSE(holds(read(with("")).notes, "scalar kernels"));
    CHECK(holds(read(with(R"("layer_types":["conv","conv","full_attention"])")).notes,
                "2 layers of conv"));
    CHECK(holds(
        read(R"({"model_type":"unheard_of","num_attention_heads":8,"hidden_size":512})").notes,
        "unheard_of is not known"));
    CHECK(holds(
        read(R"({"model_type":"unheard_of","num_attention_heads":8,"hidden_size":512})").notes,
        "512 / 8"));
    CHECK(holds(read(R"({"model_type":"unheard_of","num_attention_heads":8,"head_dim":64})").notes,
                "both are taken"));
    CHECK(holds(read(R"({"model_type":"unheard_of","num_attention_heads":8,"head_dim":64})").notes,
                "whether its queries see the keys behind them"));
    CHECK_FALSE(holds(
        read(
            R"({"model_type":"unheard_of","is_causal":true,"num_attention_heads":8,"head_dim":64})")
            .notes,
        "keys behind them"));
    CHECK(holds(read(R"({"model_type":"llama"})").notes, "32, the default of llama"));
}

TEST_CASE("a style or a format that the caller says counts") {
    const auto styles = [](std::optional<int> style) {
        const ModelReading reading = read(with(""), {.format = kFp16, .style = style});
        CHECK(reading.model.format == kFp16);
        return std::pair(reading.model.layers[0].half_split, reading.model.layers[0].interleaved);
    };
    CHECK(styles(std::nullopt) == std::pair(true, false));
    CHECK(styles(kInterleaved) == std::pair(false, true));
    CHECK(styles(kHalfSplit) == std::pair(true, false));
}

TEST_CASE("what is missing is told at once, and false fields are refused") {
    const std::string nothing = refusal_of(R"({"model_type":"unheard_of"})", {});
    for (const char* part :
         {"num_attention_heads", "head_dim, or hidden_size", "dtype", "--format", "unheard_of"}) {
        CHECK(nothing.find(part) != std::string::npos);
    }
    CHECK_REFUSED(R"({"model_type":"mamba","hidden_size":768})", "no layers of attention");
    CHECK_REFUSED(with(R"("layer_types":["mamba","linear_attention"])"), "no layers of attention");
    CHECK_REFUSED(with(R"("n_head":16)"), "n_head is 16");
    CHECK_REFUSED(with(R"("layer_types":["sliding_attention"])"), "no sliding_window");
    CHECK_REFUSED(with(R"("head_dim":Infinity)"), "head_dim of config.json is \"Infinity\"");
    CHECK_REFUSED(with(R"("partial_rotary_factor":NaN)"), "finite");
    CHECK_REFUSED(with(R"("per_layer_config":{"first":{}})"), "per_layer_config");
    CHECK_REFUSED(with(R"("attention_types":[["global",2]])"), "attention_types");
    CHECK_REFUSED(R"({"model_type":"llama","num_attention_heads":null})", "num_attention_heads");
    CHECK_REFUSED("{]", "no JSON");
}

TEST_CASE("Infinity and NaN are read where nobody asks for them, and stay text in text") {
    const ModelReading reading = read(with(
        R"("time_step_limit":[0.0,Infinity],"low":-Infinity,"x":NaN,"note":"a \"NaN\" and Infinity")"));
    CHECK(reading.model.layers.size() == 1);
    CHECK_REFUSED(with(R"("x":Infinite)"), "no JSON");
}

TEST_CASE("a configuration of 3 MB is read") {
    std::string names = "[\"x\"";
    while (names.size() < (3u << 20))
        names += ",\"model.layers.17.mlp.gate\"";
    CHECK(read(with("\"ignored\":" + names + "]")).model.layers.size() == 1);
}

}  // namespace jitney::policy
