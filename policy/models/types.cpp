#include "policy/models/types.hpp"

#include <algorithm>
#include <array>

namespace jitney::policy {
namespace {

using enum Positions;

constexpr std::string_view kLatent =
    "latent attention keeps keys and values in one compressed cache, and no kernel here reads that";
constexpr std::string_view kSparse = "its queries see a choice of keys that no kernel here makes";
constexpr std::string_view kOwnScores =
    "its scores depend on positions by learned products, which no kernel here computes";
constexpr std::string_view kOwnAttention = "its attention is no softmax over scores of q and k";

constexpr ModelType type(std::string_view name, Sizes sizes, Positions positions) {
    ModelType made;
    made.name = name;
    made.sizes = sizes;
    made.positions = positions;
    return made;
}

// clang-format off
constexpr std::array kTypes = {
    // Decoders: {hidden, heads, KV heads, head_dim, layers}
    type("afmoe", {2048, 16, 0, 128, 32}, half_split).sliding(1024, 4).full_without_rotary(),
    type("apertus", {4096, 32, 0, 0, 32}, half_split),
    type("arcee", {2560, 32, 0, 0, 32}, half_split),
    type("arctic", {4096, 32, 0, 0, 32}, half_split),
    type("aria_text", {4096, 32, 0, 0, 32}, half_split),
    type("baichuan", {4096, 32, 0, 0, 32}, half_split).alibi_unless(4096),
    type("bamba", {4096, 32, 8, 0, 32}, half_split).partial(0.5),
    type("bailing_moe", {4096, 32, 0, 0, 32}, half_split),
    type("biogpt", {1024, 16, 0, 0, 24}, none),
    type("bitnet", {2560, 20, 5, 0, 30}, half_split),
    type("bloom", {64, 8, 0, 0, 2}, alibi),
    type("chatglm", {4096, 32, 0, 0, 28}, interleaved).partial(0.5),
    type("codeshell", {4096, 32, 0, 0, 42}, half_split),
    type("codegen", {4096, 16, 0, 0, 28}, interleaved).rotated(64),
    type("cohere", {8192, 64, 0, 0, 40}, interleaved),
    type("cohere2", {8192, 64, 0, 0, 40}, interleaved).sliding(4096, 4).full_without_rotary(),
    type("cohere2_moe", {8192, 64, 0, 128, 40}, interleaved).sliding(4096, 4).full_without_rotary(),
    type("csm", {2048, 32, 8, 0, 16}, half_split),
    type("ctrl", {1280, 16, 0, 0, 48}, none),
    type("cwm", {6144, 48, 8, 128, 64}, half_split).sliding(8192, 4).alternating(LayerKind::sliding, 4, 0),
    type("dbrx", {2048, 16, 1, 0, 24}, half_split),
    type("deci", {4096, 32, 0, 0, 32}, half_split),
    type("deepseek", {4096, 32, 0, 0, 30}, half_split),
    type("deepseek_v2", {4096, 32, 0, 0, 32}, interleaved).refused(kLatent),
    type("deepseek_v3", {7168, 128, 0, 0, 61}, interleaved).refused(kLatent),
    type("deepseek_v32", {7168, 128, 0, 0, 61}, interleaved).refused(kLatent),
    type("diffllama", {2048, 32, 0, 0, 16}, half_split).refused("its attention is the difference of two softmaxes, over values of two heads at once"),
    type("doge", {1024, 8, 0, 0, 32}, half_split).refused(kSparse),
    type("dots1", {4608, 32, 0, 0, 62}, half_split),
    type("emu3_text_model", {4096, 32, 8, 0, 32}, half_split),
    type("ernie4_5", {1024, 16, 2, 128, 18}, interleaved),
    type("ernie4_5_moe", {2560, 20, 4, 0, 28}, interleaved),
    type("ernie4_5_vl_moe_text", {2560, 20, 4, 0, 28}, interleaved),
    type("ernie4_5_moe_vl", {2560, 20, 4, 0, 28}, interleaved),
    type("exaone", {4096, 32, 0, 0, 32}, half_split),
    type("exaone4", {4096, 32, 0, 0, 32}, half_split).sliding(4096, 4).full_without_rotary(),
    type("exaone_moe", {4096, 32, 0, 0, 32}, half_split).sliding(4096, 4).full_without_rotary(),
    type("falcon", {4544, 71, 0, 0, 32}, half_split).one_kv_head(),
    type("RefinedWeb", {8192, 128, 8, 0, 60}, half_split),
    type("RefinedWebModel", {4544, 71, 0, 0, 32}, half_split).one_kv_head(),
    type("falcon_h1", {4096, 32, 8, 0, 32}, half_split),
    type("falcon_mamba", {}, none).without_attention(),
    type("flex_olmo", {4096, 32, 0, 0, 32}, half_split),
    type("gemma", {3072, 16, 0, 256, 28}, half_split),
    type("gemma2", {2304, 8, 4, 256, 26}, half_split).sliding(4096, 2).capped(50),
    type("gemma3_text", {2304, 8, 4, 256, 26}, half_split).sliding(4096, 6),
    type("gemma3n_text", {2048, 8, 2, 256, 35}, half_split).sliding(512, 5),
    type("gemma4_text", {2304, 8, 4, 256, 30}, half_split).sliding(512, 6).global(512),
    type("gemma4_unified_text", {2304, 8, 4, 256, 30}, half_split).sliding(1024, 6).global(512),
    type("glm", {4096, 32, 2, 128, 40}, interleaved).partial(0.5),
    type("glm4", {4096, 32, 2, 128, 40}, interleaved).partial(0.5),
    type("glm4_moe", {4096, 96, 8, 0, 46}, half_split).partial(0.5),
    type("glm4_moe_lite", {2048, 20, 0, 0, 47}, interleaved).refused(kLatent),
    type("glm4v_text", {4096, 32, 2, 0, 40}, interleaved),
    type("glm4v_moe_text", {4096, 96, 8, 0, 46}, half_split).partial(0.5),
    type("glm_image_text", {4096, 32, 2, 0, 40}, half_split),
    type("glm_moe_dsa", {}, interleaved).refused(kLatent),
    type("glm_ocr_text", {1024, 16, 8, 0, 16}, interleaved),
    type("gpt2", {768, 12, 0, 0, 12}, none),
    type("gpt_refact", {2048, 32, 0, 0, 32}, alibi).one_kv_head(),
    type("gpt_bigcode", {768, 12, 0, 0, 12}, none).one_kv_head(),
    type("gpt_neo", {2048, 16, 0, 0, 24}, none).sliding(256, 2).alternating(LayerKind::sliding, 2, 0),
    type("gpt_neox", {6144, 64, 0, 0, 44}, half_split).partial(0.25),
    type("gpt_neox_japanese", {2560, 32, 0, 0, 32}, half_split),
    type("gpt_oss", {2880, 64, 8, 64, 36}, half_split).sliding(128, 2).sunk(Sinks::all),
    type("gptj", {4096, 16, 0, 0, 28}, interleaved).rotated(64),
    type("granite", {4096, 32, 0, 0, 32}, half_split),
    type("granite_swa", {2560, 20, 4, 0, 24}, half_split).sliding(128, 4).alternating(LayerKind::sliding, 4, 0).sunk(Sinks::all),
    type("granitemoe", {4096, 32, 0, 0, 32}, half_split),
    type("granitemoehybrid", {4096, 32, 0, 0, 32}, asked),
    type("granitemoeshared", {4096, 32, 0, 0, 32}, half_split),
    type("grok-1", {6144, 48, 8, 128, 64}, half_split).capped(30),
    type("helium", {2560, 20, 0, 128, 24}, interleaved),
    type("hunyuan", {4096, 32, 0, 0, 32}, half_split),
    type("hunyuan_v1_dense", {4096, 32, 0, 0, 32}, half_split),
    type("hunyuan_v1_moe", {4096, 32, 0, 0, 32}, half_split),
    type("hunyuan_vl_text", {4096, 32, 0, 0, 32}, half_split),
    type("hyperclovax", {4096, 32, 0, 0, 32}, half_split),
    type("internlm", {4096, 32, 0, 0, 32}, half_split),
    type("internlm2", {4096, 32, 0, 0, 32}, half_split),
    type("internlm3", {4096, 32, 2, 128, 48}, half_split),
    type("jais", {768, 12, 0, 0, 12}, alibi),
    type("jais2", {3328, 26, 0, 0, 32}, half_split),
    type("jamba", {4096, 32, 8, 0, 32}, none).alternating(LayerKind::passed, 8, 4),
    type("jetmoe", {2048, 0, 0, 128, 12}, half_split),
    type("kimi_k2", {7168, 64, 0, 0, 61}, interleaved).refused(kLatent),
    type("kimi_linear", {2304, 32, 0, 0, 27}, none).refused(kLatent),
    type("laguna", {2048, 48, 8, 128, 40}, half_split),
    type("lfm2", {2560, 32, 8, 0, 32}, half_split),
    type("lfm2_moe", {2048, 32, 8, 0, 32}, half_split),
    type("llama", {4096, 32, 0, 0, 32}, half_split),
    type("llama4_text", {5120, 40, 8, 128, 48}, interleaved).alternating(LayerKind::chunked, 4, 3).full_without_rotary(),
    type("longcat_flash", {6144, 64, 0, 0, 28}, interleaved).refused(kLatent),
    type("mamba", {}, none).without_attention(),
    type("mamba2", {}, none).without_attention(),
    type("mimo", {4096, 32, 8, 0, 36}, half_split).asked_windows(),
    type("mimo_v2_flash", {4096, 64, 4, 192, 48}, half_split).partial(0.334).sliding(128, 6).sunk(Sinks::sliding),
    type("minicpm", {2304, 36, 0, 0, 40}, half_split),
    type("minicpm3", {2560, 40, 0, 0, 62}, half_split).refused(kLatent),
    type("minimax", {4096, 32, 8, 0, 32}, half_split).alternating(LayerKind::passed, 2, 0),
    type("minimax_text_01", {}, half_split).alternating(LayerKind::passed, 8, 7),
    type("minimax_m2", {3072, 48, 8, 128, 62}, half_split),
    type("ministral", {4096, 32, 8, 0, 32}, half_split).windowed(4096),
    type("ministral3", {4096, 32, 8, 128, 34}, half_split).windowed(),
    type("mistral", {4096, 32, 8, 0, 32}, half_split).windowed(4096),
    type("mistral4", {4096, 32, 0, 0, 36}, interleaved).refused(kLatent),
    type("mixtral", {4096, 32, 8, 0, 32}, half_split).windowed(),
    type("mllama_text_model", {4096, 32, 8, 0, 40}, half_split).crossing(),
    type("modernbert-decoder", {768, 12, 0, 0, 22}, half_split).half_sliding(128, 3),
    type("molmo2_text", {4096, 32, 8, 128, 36}, half_split),
    type("moshi", {4096, 32, 0, 0, 32}, half_split).windowed(3000),
    type("mpt", {2048, 16, 0, 0, 24}, alibi),
    type("nanochat", {768, 6, 0, 0, 12}, half_split),
    type("nemotron", {6144, 48, 0, 0, 32}, half_split).partial(0.5),
    type("nemotron-nas", {8192, 64, 0, 0, 80}, half_split),
    type("nemotron_h", {4096, 32, 8, 128, 0}, none),
    type("olmo", {4096, 32, 0, 0, 32}, half_split),
    type("olmo2", {4096, 32, 0, 0, 32}, half_split),
    type("olmo3", {4096, 32, 0, 0, 32}, half_split).sliding(4096, 4),
    type("olmo_hybrid", {3840, 30, 0, 0, 32}, half_split).alternating(LayerKind::passed, 4, 3),
    type("olmoe", {2048, 16, 0, 0, 16}, half_split),
    type("openai-gpt", {768, 12, 0, 0, 12}, none),
    type("openelm", {}, half_split),
    type("opt", {768, 12, 0, 0, 12}, none),
    type("orion", {4096, 32, 0, 0, 32}, half_split),
    type("paddleocr_vl_text", {1024, 16, 2, 128, 18}, half_split),
    type("persimmon", {4096, 64, 0, 0, 36}, half_split).partial(0.5),
    type("phi", {2048, 32, 0, 0, 24}, half_split).partial(0.5),
    type("phi3", {3072, 32, 0, 0, 32}, half_split).windowed(),
    type("phi3_v", {3072, 32, 0, 0, 32}, half_split).windowed(),
    type("phi4_multimodal", {3072, 32, 8, 0, 32}, half_split).windowed(),
    type("phi4mm", {3072, 32, 8, 0, 32}, half_split).windowed(),
    type("phi3small", {4096, 32, 8, 0, 32}, half_split).refused(kSparse),
    type("phimoe", {4096, 32, 8, 0, 32}, half_split).windowed(),
    type("qwen", {4096, 32, 0, 128, 32}, half_split),
    type("qwen2", {4096, 32, 0, 0, 32}, half_split).asked_windows(),
    type("qwen2_5_omni_text", {3584, 28, 4, 0, 28}, half_split).asked_windows(),
    type("qwen2_5_vl_text", {8192, 64, 8, 0, 80}, half_split).asked_windows(),
    type("qwen2_moe", {2048, 16, 0, 0, 24}, half_split).sliding(0, 2).asked_windows(),
    type("qwen2_vl_text", {8192, 64, 8, 0, 80}, half_split).asked_windows(),
    type("qwen3", {4096, 32, 0, 128, 32}, half_split).asked_windows(),
    type("qwen3_5_moe_text", {2048, 16, 2, 256, 40}, half_split).partial(0.25).alternating(LayerKind::passed, 4, 3),
    type("qwen3_5_text", {4096, 16, 4, 256, 32}, half_split).partial(0.25).alternating(LayerKind::passed, 4, 3),
    type("qwen3_moe", {2048, 32, 4, 0, 24}, half_split).asked_windows(),
    type("qwen3_next", {2048, 16, 2, 256, 48}, half_split).partial(0.25).alternating(LayerKind::passed, 4, 3),
    type("qwen3_omni_moe_text", {2048, 28, 4, 0, 28}, half_split).asked_windows(),
    type("qwen3_vl_moe_text", {2048, 16, 16, 128, 24}, half_split),
    type("qwen3_vl_text", {4096, 32, 32, 128, 32}, half_split),
    type("recurrent_gemma", {2560, 10, 0, 0, 26}, half_split).partial(0.5).windowed(2048).alternating(LayerKind::passed, 3, 2),
    type("rwkv", {}, none).without_attention(),
    type("seed_oss", {4096, 80, 8, 128, 64}, half_split),
    type("smollm3", {2048, 16, 4, 0, 36}, half_split).sliding(0, 4).asked_windows(),
    type("solar", {4096, 32, 0, 0, 32}, half_split).windowed(),
    type("solar_open", {4096, 64, 8, 128, 48}, half_split),
    type("stablelm", {2560, 32, 0, 0, 32}, half_split).partial(0.25),
    type("stablelm_epoch", {2560, 32, 0, 0, 32}, half_split).partial(0.25),
    type("starcoder2", {3072, 24, 2, 0, 30}, half_split).windowed(),
    type("step3p5", {4096, 64, 8, 128, 45}, half_split),
    type("vaultgemma", {2304, 8, 4, 256, 26}, half_split).sliding(4096, 2).capped(50),
    type("xglm", {1024, 16, 0, 0, 24}, none),
    type("xlstm", {}, none).without_attention(),
    type("xverse", {5120, 40, 0, 0, 40}, half_split),
    type("youtu", {2048, 16, 0, 0, 32}, interleaved).refused(kLatent),
    type("zamba", {3712, 16, 0, 0, 76}, none).alternating(LayerKind::passed, 6, 4),
    type("zamba2", {2560, 32, 0, 0, 54}, asked),
    // Text towers, and decoders of models of several parts
    type("blip_text_model", {768, 8, 0, 0, 12}, none),
    type("clip_text_model", {512, 8, 0, 0, 12}, none),
    type("git", {768, 12, 0, 0, 6}, none),
    type("kosmos_2_text_model", {2048, 32, 0, 0, 24}, none),
    type("musicgen_decoder", {1024, 16, 0, 0, 24}, none),
    type("trocr", {1024, 16, 0, 0, 12}, none),

    // Encoders
    type("aimv2_vision_model", {1024, 8, 0, 0, 24}, none).encoder(),
    type("albert", {4096, 64, 0, 0, 12}, none).encoder(),
    type("bert", {768, 12, 0, 0, 12}, none).encoder(),
    type("bert-generation", {1024, 16, 0, 0, 24}, none).encoder(),
    type("big_bird", {768, 12, 0, 0, 12}, none).encoder().refused(kSparse),
    type("camembert", {768, 12, 0, 0, 12}, none).encoder(),
    type("canine", {768, 12, 0, 0, 12}, none).encoder().refused(kSparse),
    type("clip_vision_model", {768, 12, 0, 0, 12}, none).encoder(),
    type("convbert", {768, 12, 0, 0, 12}, none).encoder().refused(kOwnAttention),
    type("data2vec-text", {768, 12, 0, 0, 12}, none).encoder(),
    type("deberta", {768, 12, 0, 0, 12}, none).encoder().refused(kOwnScores),
    type("deberta-v2", {1536, 24, 0, 0, 24}, none).encoder().refused(kOwnScores),
    type("deit", {768, 12, 0, 0, 12}, none).encoder(),
    type("dinov2", {768, 12, 0, 0, 12}, none).encoder(),
    type("dinov3_vit", {384, 6, 0, 0, 12}, half_split).encoder(),
    type("distilbert", {768, 12, 0, 0, 6}, none).encoder(),
    type("Dream", {3584, 28, 4, 0, 28}, half_split).encoder(),
    type("electra", {256, 4, 0, 0, 12}, none).encoder(),
    type("ernie", {768, 12, 0, 0, 12}, none).encoder(),
    type("esm", {768, 12, 0, 0, 12}, asked).encoder(),
    type("eurobert", {768, 12, 0, 0, 12}, half_split).encoder(),
    type("flaubert", {2048, 16, 0, 0, 12}, none).encoder(),
    type("fnet", {}, none).without_attention(),
    type("funnel", {768, 12, 0, 64, 12}, none).encoder().refused(kOwnScores),
    type("gte", {768, 12, 0, 0, 12}, half_split).encoder(),
    type("hubert", {768, 12, 0, 0, 12}, none).encoder(),
    type("jina_embeddings_v3", {1024, 16, 0, 0, 24}, half_split).encoder(),
    type("layoutlm", {768, 12, 0, 0, 12}, none).encoder(),
    type("llada", {4096, 32, 0, 0, 32}, half_split).encoder(),
    type("longformer", {768, 12, 0, 0, 12}, none).encoder().refused(kSparse),
    type("luke", {768, 12, 0, 0, 12}, none).encoder(),
    type("markuplm", {768, 12, 0, 0, 12}, none).encoder(),
    type("megatron-bert", {1024, 16, 0, 0, 24}, none).encoder(),
    type("mobilebert", {512, 4, 0, 32, 24}, none).encoder(),
    type("modernbert", {768, 12, 0, 0, 22}, half_split).encoder().half_sliding(128, 3),
    type("mpnet", {768, 12, 0, 0, 12}, none).encoder().biased("relative_attention_num_buckets"),
    type("mra", {768, 12, 0, 0, 12}, none).encoder().refused(kSparse),
    type("nomic_bert", {768, 12, 0, 0, 12}, half_split).encoder(),
    type("nystromformer", {768, 12, 0, 0, 12}, none).encoder().refused(kOwnAttention),
    type("reformer", {256, 12, 0, 64, 6}, none).refused(kSparse),
    type("rembert", {1152, 18, 0, 0, 32}, none).encoder(),
    type("roberta", {768, 12, 0, 0, 12}, none).encoder(),
    type("roberta-prelayernorm", {768, 12, 0, 0, 12}, none).encoder(),
    type("roc_bert", {768, 12, 0, 0, 12}, none).encoder(),
    type("roformer", {768, 12, 0, 0, 12}, interleaved).encoder(),
    type("siglip_text_model", {768, 12, 0, 0, 12}, none).encoder(),
    type("siglip_vision_model", {768, 12, 0, 0, 12}, none).encoder(),
    type("splinter", {768, 12, 0, 0, 12}, none).encoder(),
    type("squeezebert", {768, 12, 0, 0, 12}, none).encoder(),
    type("visual_bert", {768, 12, 0, 0, 12}, none).encoder(),
    type("vit", {768, 12, 0, 0, 12}, none).encoder(),
    type("wav2vec2", {768, 12, 0, 0, 12}, none).encoder(),
    type("xlm", {2048, 16, 0, 0, 12}, none).encoder(),
    type("xlm-roberta", {768, 12, 0, 0, 12}, none).encoder(),
    type("xlm-roberta-xl", {2560, 32, 0, 0, 36}, none).encoder(),
    type("xlnet", {1024, 16, 0, 0, 24}, none).refused(kOwnScores),
    type("xmod", {768, 12, 0, 0, 12}, none).encoder(),
    type("yoso", {768, 12, 0, 0, 12}, none).encoder().refused(kOwnAttention),

    // Both
    type("bart", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("bigbird_pegasus", {1024, 16, 0, 0, 16}, none).encoder_decoder().refused(kSparse),
    type("blenderbot", {2560, 32, 0, 0, 24}, none).encoder_decoder(),
    type("blenderbot-small", {512, 16, 0, 0, 8}, none).encoder_decoder(),
    type("fsmt", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("led", {1024, 16, 0, 0, 12}, none).encoder_decoder().refused(kSparse),
    type("longt5", {512, 8, 0, 64, 6}, none).encoder_decoder().refused(kSparse),
    type("m2m_100", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("marian", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("mbart", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("moonshine", {288, 8, 0, 0, 6}, interleaved).encoder_decoder().partial(0.9),
    type("mt5", {512, 6, 0, 64, 8}, none).encoder_decoder().biased("relative_attention_num_buckets"),
    type("mvp", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("nllb-moe", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("pegasus", {1024, 16, 0, 0, 12}, none).encoder_decoder(),
    type("pegasus_x", {1024, 16, 0, 0, 16}, none).encoder_decoder().refused(kSparse),
    type("plbart", {768, 12, 0, 0, 6}, none).encoder_decoder(),
    type("pop2piano", {512, 8, 0, 64, 6}, none).encoder_decoder().biased("relative_attention_num_buckets"),
    type("prophetnet", {1024, 16, 0, 0, 12}, none).encoder_decoder().refused(kOwnScores),
    type("speech_to_text", {256, 4, 0, 0, 6}, none).encoder_decoder(),
    type("switch_transformers", {768, 12, 0, 64, 12}, none).encoder_decoder().biased("relative_attention_num_buckets"),
    type("t5", {512, 8, 0, 64, 6}, none).encoder_decoder().biased("relative_attention_num_buckets"),
    type("t5gemma", {2304, 8, 4, 256, 26}, half_split).encoder_decoder().sliding(4096, 2).capped(50),
    type("udop", {1024, 16, 0, 64, 24}, none).encoder_decoder().biased("relative_attention_num_buckets"),
    type("umt5", {512, 6, 0, 64, 8}, none).encoder_decoder().biased("relative_attention_num_buckets"),
    type("whisper", {384, 6, 0, 0, 4}, none).encoder_decoder(),
};

struct Composite {
    std::string_view name;
    std::string_view text;
};

// Models of several parts -> the type of the one that writes text.
constexpr auto kComposites = std::to_array<Composite>({
    {"aria", "aria_text"}, {"audioflamingo3", "qwen2"}, {"aya_vision", "cohere2"},
    {"blip-2", "opt"}, {"clip", "clip_text_model"}, {"cohere2_vision", "cohere2"},
    {"deepseek_vl", "llama"}, {"deepseek_vl_hybrid", "llama"}, {"deepseek_vl_v2", "deepseek_v2"},
    {"emu3", "emu3_text_model"}, {"ernie4_5_vl_moe", "ernie4_5_vl_moe_text"},
    {"exaone4_5", "exaone4"}, {"fast_vlm", "qwen2"}, {"fuyu", "persimmon"},
    {"gemma3", "gemma3_text"}, {"gemma3n", "gemma3n_text"}, {"gemma4", "gemma4_text"},
    {"gemma4_unified", "gemma4_unified_text"}, {"glm46v", "glm4v_text"}, {"glm4v", "glm4v_text"},
    {"glm4v_moe", "glm4v_moe_text"}, {"glm_image", "glm_image_text"}, {"glm_ocr", "glm_ocr_text"}, {"got_ocr2", "qwen2"}, {"granite_speech", "granite"},
    {"hunyuan_vl", "hunyuan_vl_text"}, {"idefics2", "mistral"}, {"idefics3", "llama"},
    {"instructblip", "opt"}, {"instructblipvideo", "opt"}, {"internvl", "qwen2"},
    {"janus", "llama"}, {"kimi_k25", "deepseek_v3"}, {"kimi_vl", "deepseek_v3"},
    {"kosmos-2", "kosmos_2_text_model"}, {"lfm2_vl", "lfm2"}, {"lighton_ocr", "qwen3"},
    {"llama4", "llama4_text"}, {"llava", "llama"}, {"llava_next", "llama"},
    {"llava_llama", "llama"}, {"llava_mistral", "mistral"},
    {"llava_next_video", "llama"}, {"llava_onevision", "qwen2"}, {"llava_qwen", "qwen2"}, {"mistral3", "mistral"},
    {"mllama", "mllama_text_model"}, {"molmo2", "molmo2_text"}, {"musicgen", "musicgen_decoder"},
    {"musicgen_melody", "musicgen_decoder"}, {"nemotron_h_omni", "nemotron_h"},
    {"ovis2", "qwen2"}, {"paddleocr_vl", "paddleocr_vl_text"}, {"paligemma", "gemma"},
    {"perception_lm", "llama"}, {"qwen2_5_omni", "qwen2_5_omni_text"},
    {"qwen2_5_omni_thinker", "qwen2_5_omni_text"}, {"qwen2_5_vl", "qwen2_5_vl_text"},
    {"qwen2_audio", "qwen2"}, {"qwen2_vl", "qwen2_vl_text"}, {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"}, {"qwen3_omni_moe", "qwen3_omni_moe_text"},
    {"qwen3_omni_moe_thinker", "qwen3_omni_moe_text"}, {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text"}, {"shieldgemma2", "gemma3_text"},
    {"siglip", "siglip_text_model"}, {"smolvlm", "llama"}, {"step3p7", "step3p5"},
    {"video_llama_3", "qwen2"}, {"video_llava", "llama"}, {"vipllava", "llama"},
    {"voxtral", "llama"},
});
// clang-format on

constexpr const ModelType* row_of(std::string_view name) noexcept {
    for (const ModelType& each : kTypes) {
        if (each.name == name) return &each;
    }
    return nullptr;
}

constexpr bool each_stands_once() {
    for (const ModelType& each : kTypes) {
        if (row_of(each.name) != &each) return false;
    }
    return true;
}

constexpr bool parts_are_known() {
    for (const Composite& each : kComposites) {
        if (row_of(each.text) == nullptr || row_of(each.name) != nullptr) return false;
    }
    return true;
}

static_assert(each_stands_once());
static_assert(parts_are_known());

}  // namespace

const ModelType* find_model_type(std::string_view name) noexcept {
    return row_of(name);
}

std::string_view text_type_of(std::string_view name) noexcept {
    const auto* const found =
        std::find_if(kComposites.begin(), kComposites.end(),
                     [name](const Composite& each) { return each.name == name; });
    return found == kComposites.end() ? std::string_view{} : found->text;
}

}  // namespace jitney::policy
