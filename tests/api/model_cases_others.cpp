#include "tests/api/model_cases.hpp"

namespace jitney::tests {

// clang-format off
std::vector<ModelCase> other_cases() {
    return {
        // Models of several parts
        {R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":5376,"num_attention_heads":32,"num_key_value_heads":16,"num_hidden_layers":62,"head_dim":128,"sliding_window":1024},"vision_config":{"hidden_size":1152,"num_attention_heads":16}})",
         {layer(32, 16, 128).half(128).window(1023), layer(32, 16, 128).half(128)}},
        {R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560,"num_hidden_layers":34,"sliding_window":1024,"rope_scaling":{"factor":8.0,"rope_type":"linear"}}})",
         {layer(8, 4, 256).half(256).window(1023), layer(8, 4, 256).half(256)}},
        {R"({"model_type":"gemma3n","text_config":{"model_type":"gemma3n_text","hidden_size":2048,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":256,"num_hidden_layers":30,"sliding_window":512,"num_kv_shared_layers":10}})",
         {layer(8, 2, 256).half(256).window(511), layer(8, 2, 256).half(256)}},
        {R"({"model_type":"gemma4","text_config":{"model_type":"gemma4_text","hidden_size":2304,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"global_head_dim":512,"num_global_key_value_heads":2,"attention_k_eq_v":true,"num_hidden_layers":12,"sliding_window":512}})",
         {layer(8, 4, 256).half(256).window(511), layer(8, 2, 512).half(512)}},
        {R"({"model_type":"gemma4_text","hidden_size":2304,"num_attention_heads":8,"num_key_value_heads":4,"layer_types":["sliding_attention","full_attention"],"sliding_window":512,"per_layer_config":{"01":{"head_dim":512,"num_key_value_heads":1}},"rope_parameters":{"sliding_attention":{"rope_type":"default"},"full_attention":{"rope_type":"proportional","partial_rotary_factor":0.25}}})",
         {layer(8, 4, 256).half(256).window(511), layer(8, 1, 512).half(512)}},
        {R"({"model_type":"llava","text_config":{"_name_or_path":"lmsys/vicuna-7b-v1.5","model_type":"llama","max_position_embeddings":4096},"vision_config":{"hidden_size":1024,"num_attention_heads":16}})",
         {layer(32, 32, 128).half(128)}},
        {R"({"model_type":"llava_next","text_config":{"model_type":"mistral","num_key_value_heads":8,"sliding_window":null}})",
         {layer(32, 8, 128).half(128)}},
        {R"({"model_type":"internvl_chat","llm_config":{"model_type":"qwen2","hidden_size":3584,"num_attention_heads":28,"num_key_value_heads":4},"vision_config":{"num_attention_heads":16,"hidden_size":1024}})",
         {layer(28, 4, 128).half(128)}},
        {R"({"model_type":"qwen2_5_omni","thinker_config":{"model_type":"qwen2_5_omni_thinker","text_config":{"model_type":"qwen2_5_omni_text","hidden_size":3584,"num_attention_heads":28,"num_key_value_heads":4}},"talker_config":{"hidden_size":896,"num_attention_heads":12}})",
         {layer(28, 4, 128).half(128)}},
        {R"({"model_type":"qwen2_vl","hidden_size":1536,"num_attention_heads":12,"num_key_value_heads":2,"use_sliding_window":false,"rope_scaling":{"type":"mrope","mrope_section":[16,24,24]},"vision_config":{"depth":32,"num_heads":16,"embed_dim":1280}})",
         {layer(12, 2, 128).half(128)}},
        {R"({"model_type":"qwen2_5_vl","text_config":{"model_type":"qwen2_5_vl_text","hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":2}})",
         {layer(16, 2, 128).half(128)}},
        {R"({"model_type":"mllama","text_config":{"model_type":"mllama_text_model","hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":40,"cross_attention_layers":[3,8,13]}})",
         {layer(32, 8, 128).half(128), cross(32, 8, 128)}},
        {R"({"model_type":"glm4v","text_config":{"model_type":"glm4v_text","hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":2,"partial_rotary_factor":0.5}})",
         {layer(32, 2, 128).pairs(64)}},
        {R"({"model_type":"paligemma","text_config":{"model_type":"gemma","hidden_size":2048,"num_attention_heads":8,"num_key_value_heads":1}})",
         {layer(8, 1, 256).half(256)}},
        {R"({"model_type":"mistral3","text_config":{"model_type":"mistral","hidden_size":5120,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"sliding_window":null}})",
         {layer(32, 8, 128).half(128)}},
        {R"({"model_type":"vision-encoder-decoder","encoder":{"model_type":"vit","num_attention_heads":12},"decoder":{"model_type":"gpt2","n_head":12,"n_embd":768,"add_cross_attention":true}})",
         {layer(12, 12, 64), cross(12, 12, 64)}},

        // Encoders
        {R"({"architectures":["BertForMaskedLM"],"model_type":"bert","hidden_size":768,"num_attention_heads":12,"num_hidden_layers":12,"position_embedding_type":"absolute"})",
         {encoder(12, 64)}},
        {R"({"model_type":"roberta","hidden_size":1024,"num_attention_heads":16,"num_hidden_layers":24})",
         {encoder(16, 64)}},
        {R"({"model_type":"xlm-roberta","hidden_size":1024,"num_attention_heads":16})",
         {encoder(16, 64)}},
        {R"({"model_type":"distilbert","dim":768,"n_heads":12,"n_layers":6})",
         {encoder(12, 64)}},
        {R"({"model_type":"modernbert","hidden_size":768,"num_attention_heads":12,"num_hidden_layers":22,"local_attention":128,"global_attn_every_n_layers":3,"position_embedding_type":"absolute"})",
         {encoder(12, 64).half(64), encoder(12, 64).half(64).window(64)}},
        {R"({"model_type":"nomic_bert","n_embd":768,"n_head":12,"n_layer":12,"rotary_emb_fraction":1.0,"rotary_emb_interleaved":false,"causal":false})",
         {encoder(12, 64).half(64)}},
        {R"({"model_type":"eurobert","hidden_size":768,"num_attention_heads":12,"num_key_value_heads":12})",
         {encoder(12, 64).half(64)}},
        {R"({"model_type":"esm","hidden_size":1280,"num_attention_heads":20,"position_embedding_type":"rotary"})",
         {encoder(20, 64).half(64)}},
        {R"({"model_type":"gemma3_text","hidden_size":768,"num_attention_heads":3,"num_key_value_heads":3,"head_dim":256,"num_hidden_layers":24,"sliding_window":512,"use_bidirectional_attention":true})",
         {encoder(3, 256).half(256).window(256), encoder(3, 256).half(256)}},
        {R"({"model_type":"bert","is_decoder":true,"hidden_size":768,"num_attention_heads":12})",
         {layer(12, 12, 64)}},
        {R"({"model_type":"siglip_vision_model","hidden_size":1152,"num_attention_heads":16})",
         {encoder(16, 72)}},

        // Encoders and decoders
        {R"({"model_type":"whisper","d_model":1280,"decoder_attention_heads":20,"encoder_attention_heads":20,"decoder_layers":4,"encoder_layers":32})",
         {encoder(20, 64), layer(20, 20, 64), cross(20, 20, 64)}},
        {R"({"model_type":"bart","d_model":768,"encoder_attention_heads":12,"decoder_attention_heads":16,"encoder_layers":6,"decoder_layers":6})",
         {encoder(12, 64), layer(16, 16, 48), cross(16, 16, 48)}},
        {R"({"model_type":"m2m_100","d_model":1024,"encoder_attention_heads":16,"decoder_attention_heads":16})",
         {encoder(16, 64), layer(16, 16, 64), cross(16, 16, 64)}},

        // Types that are not in the table
        {R"({"model_type":"unheard_of","architectures":["UnheardForCausalLM"],"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":4,"head_dim":96,"rope_interleave":true,"num_hidden_layers":2})",
         {layer(16, 4, 96).pairs(96)}},
        {R"({"model_type":"unheard_of","is_decoder":true,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":4,"head_dim":128,"rope_theta":10000.0})",
         {layer(16, 4, 128).half(128).pairs(128)}},
        {R"({"model_type":"unheard_of","architectures":["UnheardLMHeadModel"],"d_model":1024,"n_heads":16,"head_size":64,"alibi":true})",
         {layer(16, 16, 64).sloped()}},
        {R"({"is_causal":true,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":64,"sliding_window":4096,"position_embedding_type":"learned"})",
         {layer(8, 2, 64), layer(8, 2, 64).window(4095)}},
        {R"({"model_type":"unheard_of","architectures":["UnheardForConditionalGeneration"],"num_attention_heads":16,"projection_size":1536,"hidden_size":1024,"position_embedding_type":"none"})",
         {layer(16, 16, 96)}},
        {R"({"model_type":"unheard_of","architectures":["UnheardForCausalLM"],"n_embd":4096,"n_head":32,"num_query_groups":8,"group_query_attention":true,"position_embedding_type":"none"})",
         {layer(32, 8, 128)}},
        {R"({"model_type":"unheard_of","is_causal":true,"num_attention_heads":8,"hidden_size":768,"hidden_size_per_head":128,"position_embedding_type":"none"})",
         {layer(8, 8, 128)}},
        // Pictures have no order that their elements are written in.
        {R"({"model_type":"unheard_of","hidden_size":1024,"num_attention_heads":16,"patch_size":14,"image_size":224,"position_embedding_type":"none"})",
         {encoder(16, 64)}},
        {R"({"model_type":"unheard_of","architectures":["UnheardForMaskedLM"],"hidden_size":768,"num_attention_heads":12,"position_embedding_type":"none"})",
         {encoder(12, 64)}},
        // Where nothing tells whether queries see the keys behind them, both are.
        {R"({"model_type":"unheard_of","hidden_size":768,"num_attention_heads":12,"position_embedding_type":"none"})",
         {layer(12, 12, 64), encoder(12, 64)}},
        {R"({"model_type":"codeshell","n_embd":4096,"n_head":32,"num_query_groups":8})",
         {layer(32, 8, 128).half(128)}},
        {R"({"model_type":"gpt_refact","n_embd":2048,"n_head":32})", {layer(32, 1, 64).sloped()}},
        {R"({"model_type":"Dream","hidden_size":3584,"num_attention_heads":28,"num_key_value_heads":28})",
         {encoder(28, 128).half(128)}},
        {R"({"model_type":"dinov3_vit","hidden_size":384,"num_attention_heads":6})",
         {encoder(6, 64).half(64)}},
    };
}
// clang-format on

}  // namespace jitney::tests
