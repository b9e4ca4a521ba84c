// Every member of every struct of the C ABI arrives in the field of its name. The names stand here
// once more, apart from the lists that the conversion walks over, so that two that are exchanged
// there are seen.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <optional>

#include "api/c_abi_arguments.hpp"
#include "operations/all_fields.hpp"

namespace jitney {
namespace {

// Tensors that no two fields have in common.
class Tensors {
  public:
    const DLTensor* next() {
        DLTensor& tensor = all_.at(count_++);
        tensor = {};
        shapes_.at(count_ - 1) = static_cast<std::int64_t>(count_);
        tensor.data = reinterpret_cast<void*>(0x1000 * count_);
        tensor.device = {kDLCPU, 0};
        tensor.ndim = 1;
        tensor.dtype = {kDLFloat, 32, 1};
        tensor.shape = &shapes_.at(count_ - 1);
        return &tensor;
    }

  private:
    std::array<DLTensor, 40> all_;
    std::array<std::int64_t, 40> shapes_{};
    std::size_t count_ = 0;
};

bool is(const Tensor& tensor, const DLTensor* given) {
    return tensor.data == given->data && tensor.shape[0] == given->shape[0];
}
bool is(const std::optional<Tensor>& tensor, const DLTensor* given) {
    return tensor && is(*tensor, given);
}

// Fills a struct whose fields of these names are tensors, and looks for them in what it becomes.
#define GIVE(name) c.name = tensors.next();
#define FIND(name) CHECK_MESSAGE(is(args.name, c.name), #name);
#define ONE(name) +1

template <class Args>
constexpr std::size_t kFields = std::tuple_size_v<decltype(CallFields<Args>::all)>;

#define CACHE(X)    \
    X(k)            \
    X(v)            \
    X(kv_lens)      \
    X(kv_indptr)    \
    X(req_to_token) \
    X(req_pool_indices) X(block_table) X(kv_page_indptr) X(kv_page_indices) X(last_page_len)
#define ATTENTION(X) \
    CACHE(X) X(q) X(out) X(mask) X(lse) X(qo_indptr) X(alibi_slopes) X(sinks) X(new_k) X(new_v)

TEST_CASE("Each member of jitney_attention_args arrives") {
    static_assert(kFields<AttentionArgs> == 0 ATTENTION(ONE) + 11);
    Tensors tensors;
    const std::array declared = {"const float* a", "float b", "int c", "long long d"};
    const jitney_logits_function* logits = nullptr;
    REQUIRE(jitney_logits_function_of("score + a[0] + b + c + d", declared.data(), 4, &logits) ==
            JITNEY_SUCCESS);
    int host = 0;
    char memory = 0;
    jitney_attention_args c = {};
    c.size = sizeof c;
    ATTENTION(GIVE)
    c.scale = 0.25f;
    c.qo_indptr_host = &host;
    c.max_kv_len = std::int64_t{1} << 40;
    c.has_window = 1;
    c.window_left = 11;
    c.window_right = 12;
    c.softcap = 0.75f;
    c.workspace = &memory;
    c.workspace_bytes = 77;
    c.logits = logits;
    c.logits_values[0].pointer = &host;
    c.logits_values[1].fp32 = 1.5f;
    c.logits_values[2].int32 = -5;
    c.logits_values[3].int64 = std::int64_t{1} << 41;
    for (const bool causal : {false, true}) {
        c.causal = causal ? 1 : 0;
        c.batch_invariant = causal ? 0 : 1;
        const c_abi::Arguments<AttentionArgs> made(&c, "");
        const AttentionArgs& args = made.args();
        ATTENTION(FIND)
        CHECK(args.causal == causal);
        CHECK(args.batch_invariant == !causal);
        CHECK(args.scale == 0.25f);
        CHECK(args.qo_indptr_host.data() == &host);
        CHECK(std::ssize(args.qo_indptr_host) == c.qo_indptr->shape[0]);
        CHECK(args.max_kv_len == std::int64_t{1} << 40);
        CHECK(args.window_left == 11);
        CHECK(args.window_right == 12);
        CHECK(args.softcap == 0.75f);
        CHECK(args.workspace.data == &memory);
        CHECK(args.workspace.bytes == 77);
        CHECK(args.logits);
        const LogitsValues values = {&host, 1.5f, std::int32_t{-5}, 1LL << 41};
        for (std::size_t i = 0; i < values.size(); ++i) {
            CHECK(args.logits_values[i].kind() == values[i].kind());
            CHECK(args.logits_values[i].bits() == values[i].bits());
        }
    }
}

TEST_CASE("What a C struct leaves 0 is left out") {
    Tensors tensors;
    jitney_attention_args c = {};
    c.size = sizeof c;
    c.q = c.k = c.v = c.out = tensors.next();
    const c_abi::Arguments<AttentionArgs> made(&c, "");
    const AttentionArgs& args = made.args();
    const AttentionArgs none;
    CHECK_FALSE(args.scale);
    CHECK_FALSE(args.softcap);
    CHECK_FALSE(args.max_kv_len);
    CHECK(args.window_left == none.window_left);
    CHECK(args.window_right == none.window_right);
    CHECK_FALSE(args.mask);
    CHECK_FALSE(args.logits);
    CHECK(args.qo_indptr_host.empty());
    CHECK(args.logits_values[0].kind() == LogitsValue::Kind::none);
    CHECK(args.workspace.data == nullptr);
}

#define ROTARY(X) X(q) X(k) X(q_out) X(k_out) X(cos) X(sin) X(positions)

TEST_CASE("Each member of jitney_rotary_args arrives") {
    static_assert(kFields<RotaryArgs> == 0 ROTARY(ONE) + 1);
    Tensors tensors;
    jitney_rotary_args c = {};
    c.size = sizeof c;
    ROTARY(GIVE)
    c.style = JITNEY_HALF_SPLIT;
    const c_abi::Arguments<RotaryArgs> made(&c, "");
    const RotaryArgs& args = made.args();
    ROTARY(FIND)
    CHECK(args.style == RotaryStyle::half_split);
}

#define APPEND_KV(X) \
    CACHE(X) X(new_k) X(new_v) X(new_indptr) X(cos) X(sin) X(positions) X(q) X(q_out)

TEST_CASE("Each member of jitney_append_kv_args arrives") {
    static_assert(kFields<AppendKvArgs> == 0 APPEND_KV(ONE) + 1);
    Tensors tensors;
    jitney_append_kv_args c = {};
    c.size = sizeof c;
    APPEND_KV(GIVE)
    c.style = JITNEY_HALF_SPLIT;
    const c_abi::Arguments<AppendKvArgs> made(&c, "");
    const AppendKvArgs& args = made.args();
    APPEND_KV(FIND)
    CHECK(args.style == RotaryStyle::half_split);
}

TEST_CASE("Each member of jitney_merge_states_args arrives") {
    static_assert(kFields<MergeStatesArgs> == 3 && kFields<PartialState> == 2);
    Tensors tensors;
    const std::array<jitney_partial_state, 2> parts = {
        {{tensors.next(), tensors.next()}, {tensors.next(), tensors.next()}}};
    jitney_merge_states_args c = {};
    c.size = sizeof c;
    c.parts = parts.data();
    c.part_count = parts.size();
    c.out = tensors.next();
    c.lse = tensors.next();
    const c_abi::Arguments<MergeStatesArgs> made(&c, "");
    const MergeStatesArgs& args = made.args();
    CHECK(is(args.out, c.out));
    CHECK(is(args.lse, c.lse));
    REQUIRE(args.parts.size() == parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        CHECK(is(args.parts[i].out, parts[i].out));
        CHECK(is(args.parts[i].lse, parts[i].lse));
    }
}

#define RMS_NORM(X) X(x) X(residual) X(sum) X(weight) X(bias) X(out) X(multiplier) X(scale)

TEST_CASE("Each member of jitney_rms_norm_args arrives") {
    static_assert(kFields<RmsNormArgs> == 0 RMS_NORM(ONE) + 3);
    Tensors tensors;
    jitney_rms_norm_args c = {};
    c.size = sizeof c;
    RMS_NORM(GIVE)
    for (int set = 0; set < 3; ++set) {
        c.eps = set == 0 ? 0.25f : 0.0f;
        c.one_plus_weight = set == 1;
        c.subtract_mean = set == 2;
        const c_abi::Arguments<RmsNormArgs> made(&c, "");
        const RmsNormArgs& args = made.args();
        RMS_NORM(FIND)
        CHECK(args.eps == (set == 0 ? std::optional(0.25f) : std::nullopt));
        CHECK(args.one_plus_weight == (set == 1));
        CHECK(args.subtract_mean == (set == 2));
    }
}

#define GATED_ACTIVATION(X) X(gate) X(up) X(out) X(multiplier) X(scale)

TEST_CASE("Each member of jitney_gated_activation_args arrives") {
    static_assert(kFields<GatedActivationArgs> == 0 GATED_ACTIVATION(ONE) + 1);
    Tensors tensors;
    jitney_gated_activation_args c = {};
    c.size = sizeof c;
    GATED_ACTIVATION(GIVE)
    c.activation = JITNEY_RELU2;
    const c_abi::Arguments<GatedActivationArgs> made(&c, "");
    const GatedActivationArgs& args = made.args();
    GATED_ACTIVATION(FIND)
    CHECK(args.activation == Activation::relu2);
}

#define FP8_QUANTIZE(X) X(x) X(out) X(out_transposed) X(multiplier) X(scale) X(amax)

TEST_CASE("Each member of jitney_fp8_quantize_args arrives") {
    static_assert(kFields<Fp8QuantizeArgs> == 0 FP8_QUANTIZE(ONE) + 4);
    Tensors tensors;
    char memory = 0;
    jitney_fp8_quantize_args c = {};
    c.size = sizeof c;
    FP8_QUANTIZE(GIVE)
    c.dynamic = 1;
    c.granularity = JITNEY_FP8_BLOCK;
    c.power_of_two = 1;
    c.workspace = &memory;
    c.workspace_bytes = 77;
    const c_abi::Arguments<Fp8QuantizeArgs> made(&c, "");
    const Fp8QuantizeArgs& args = made.args();
    FP8_QUANTIZE(FIND)
    CHECK(args.dynamic);
    CHECK(args.granularity == Fp8Granularity::block);
    CHECK(args.power_of_two);
    CHECK(args.workspace.data == &memory);
    CHECK(args.workspace.bytes == 77);
}

#define FP8_GEMM_TENSORS(X) X(a) X(b) X(out) X(bias) X(out_multiplier) X(amax)
#define FP8_GEMM_SCALES(X) X(dequant_scale) X(scale_a) X(scale_b) X(group_indptr)
#define FP8_GEMM(X) FP8_GEMM_TENSORS(X) FP8_GEMM_SCALES(X)

TEST_CASE("Each member of jitney_fp8_gemm_args arrives") {
    static_assert(kFields<Fp8GemmArgs> == 0 FP8_GEMM(ONE) + 4);
    Tensors tensors;
    char memory = 0;
    jitney_fp8_gemm_args c = {};
    c.size = sizeof c;
    FP8_GEMM(GIVE)
    c.workspace = &memory;
    c.workspace_bytes = 77;
    for (int set = 0; set < 3; ++set) {
        c.trans_a = set == 0;
        c.trans_b = set == 1;
        c.fast_accum = set == 2;
        const c_abi::Arguments<Fp8GemmArgs> made(&c, "");
        const Fp8GemmArgs& args = made.args();
        FP8_GEMM(FIND)
        CHECK(args.trans_a == (set == 0));
        CHECK(args.trans_b == (set == 1));
        CHECK(args.fast_accum == (set == 2));
        CHECK(args.workspace.data == &memory);
        CHECK(args.workspace.bytes == 77);
    }
}

constexpr jitney_fp8_recipe kRecipe = {JITNEY_FP8_HYBRID, JITNEY_FP8_DYNAMIC, 7, JITNEY_FP8_LATEST,
                                       3};

void check_recipe(const Fp8Recipe& recipe) {
    CHECK(recipe.formats == Fp8Formats::hybrid);
    CHECK(recipe.scaling == Fp8Scaling::dynamic);
    CHECK(recipe.history == 7);
    CHECK(recipe.amax == Fp8Amax::latest);
    CHECK(recipe.margin == 3);
}

template <class C>
void check_saved(const Fp8LinearSaved& saved, const C& c) {
    CHECK(is(saved.x_codes, c.x_codes));
    CHECK(is(saved.weight_codes, c.weight_codes));
    CHECK(is(saved.scales, c.scales));
}

#define SAVED(X) X(x_codes) X(weight_codes) X(scales)
#define FP8_LINEAR(X) X(x) X(weight) X(bias) X(y) X(state)

TEST_CASE("Each member of jitney_fp8_linear_args arrives") {
    static_assert(kFields<Fp8LinearArgs> == 0 FP8_LINEAR(ONE) + 4 && kFields<Fp8Recipe> == 5 &&
                  kFields<Fp8LinearSaved> == 3);
    Tensors tensors;
    char memory = 0;
    jitney_fp8_linear_args c = {};
    c.size = sizeof c;
    FP8_LINEAR(GIVE)
    c.recipe = kRecipe;
    c.fast_accum = 1;
    c.workspace = &memory;
    c.workspace_bytes = 77;
    const c_abi::Arguments<Fp8LinearArgs> alone(&c, "");
    CHECK_FALSE(alone.args().saved);
    SAVED(GIVE)
    const c_abi::Arguments<Fp8LinearArgs> made(&c, "");
    const Fp8LinearArgs& args = made.args();
    FP8_LINEAR(FIND)
    REQUIRE(args.saved);
    check_saved(*args.saved, c);
    check_recipe(args.recipe);
    CHECK(args.fast_accum);
    CHECK(args.workspace.data == &memory);
    CHECK(args.workspace.bytes == 77);
}

#define FP8_LINEAR_BACKWARD(X) X(grad_y) X(grad_x) X(grad_weight) X(grad_bias) X(state)

TEST_CASE("Each member of jitney_fp8_linear_backward_args arrives") {
    static_assert(kFields<Fp8LinearBackwardArgs> == 0 FP8_LINEAR_BACKWARD(ONE) + 4);
    Tensors tensors;
    char memory = 0;
    jitney_fp8_linear_backward_args c = {};
    c.size = sizeof c;
    FP8_LINEAR_BACKWARD(GIVE)
    SAVED(GIVE)
    c.recipe = kRecipe;
    c.fast_accum = 1;
    c.workspace = &memory;
    c.workspace_bytes = 77;
    const c_abi::Arguments<Fp8LinearBackwardArgs> made(&c, "");
    const Fp8LinearBackwardArgs& args = made.args();
    FP8_LINEAR_BACKWARD(FIND)
    check_saved(args.saved, c);
    check_recipe(args.recipe);
    CHECK(args.fast_accum);
    CHECK(args.workspace.data == &memory);
    CHECK(args.workspace.bytes == 77);
}

#define FP8_LINEAR_INFERENCE(X) X(x) X(weight) X(weight_scale) X(x_scale) X(bias) X(y)

TEST_CASE("Each member of jitney_fp8_linear_inference_args arrives") {
    static_assert(kFields<Fp8LinearInferenceArgs> == 0 FP8_LINEAR_INFERENCE(ONE) + 2);
    Tensors tensors;
    char memory = 0;
    jitney_fp8_linear_inference_args c = {};
    c.size = sizeof c;
    FP8_LINEAR_INFERENCE(GIVE)
    c.fast_accum = 1;
    c.workspace = &memory;
    c.workspace_bytes = 77;
    const c_abi::Arguments<Fp8LinearInferenceArgs> made(&c, "");
    const Fp8LinearInferenceArgs& args = made.args();
    FP8_LINEAR_INFERENCE(FIND)
    CHECK(args.fast_accum);
    CHECK(args.workspace.data == &memory);
    CHECK(args.workspace.bytes == 77);
}

}  // namespace
}  // namespace jitney
