/* NULL wherever a pointer is asked for, structs of other versions, and the thread's sentence. */
#include <pthread.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static void null_everywhere(void) {
    problem p;
    CHECK_REFUSED(jitney_attention(NULL, NULL), JITNEY_INVALID_ARGUMENT, "jitney_attention_args");
    CHECK_REFUSED(jitney_attn_prefill(NULL, JITNEY_MMA, NULL), JITNEY_INVALID_ARGUMENT, "null");
    CHECK_REFUSED(jitney_attn_decode(NULL, JITNEY_MMA, NULL), JITNEY_INVALID_ARGUMENT, "null");
    CHECK_REFUSED(jitney_rotary_emb(NULL, NULL), JITNEY_INVALID_ARGUMENT, "jitney_rotary_args");
    CHECK_REFUSED(jitney_push_kernel(NULL), JITNEY_INVALID_ARGUMENT, "null");

    const char* json = "";
    CHECK_REFUSED(jitney_explain_attention(NULL, "sm_80", &json), JITNEY_INVALID_ARGUMENT, "null");
    CHECK(json == NULL);
    CHECK_REFUSED(jitney_explain_rotary(NULL, "sm_80", &json), JITNEY_INVALID_ARGUMENT, "null");
    make_problem(&p);
    CHECK_REFUSED(jitney_explain_attention(&p.args, "sm_80", NULL), JITNEY_INVALID_ARGUMENT,
                  "json is null");
    CHECK_REFUSED(jitney_explain_rotary(NULL, "sm_80", NULL), JITNEY_INVALID_ARGUMENT,
                  "json is null");

    CHECK_REFUSED(jitney_prewarm(NULL, 1, 0, NULL, NULL), JITNEY_INVALID_ARGUMENT, "specs is null");
    const char* const no_text[] = {NULL};
    CHECK_REFUSED(jitney_prewarm(no_text, 1, 0, NULL, NULL), JITNEY_INVALID_ARGUMENT, "null");

    static const struct {
        size_t offset;
        const char* name;
    } required[] = {{offsetof(jitney_attention_args, q), "q is null"},
                    {offsetof(jitney_attention_args, k), "k is null"},
                    {offsetof(jitney_attention_args, v), "v is null"},
                    {offsetof(jitney_attention_args, out), "out is null"}};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; ++i) {
        make_problem(&p);
        const DLTensor* none = NULL;
        memcpy((char*)&p.args + required[i].offset, &none, sizeof none);
        CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, required[i].name);
    }
}

static void sizes_of_the_struct(void) {
    problem p;
    make_problem(&p);
    p.args.size = 0;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "size is 0");
    p.args.size = 8;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "size is 8");
    p.args.size = (size_t)-1; /* never set */
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "args->size");

    /* A caller of a later version, whose new fields are left out; and one that uses them. */
    struct {
        jitney_attention_args known;
        const DLTensor* unknown[3];
    } later;
    memset(&later, 0, sizeof later);
    make_problem(&p);
    later.known = p.args;
    later.known.size = sizeof later;
    CHECK_PASSED(jitney_attention(&later.known, NULL));
    CHECK(is_right(&p));
    later.unknown[2] = &p.tq.view;
    CHECK_REFUSED(jitney_attention(&later.known, NULL), JITNEY_UNSUPPORTED, "newer libjitney");
}

/* Whether all arguments but the size are to blame; they are 0. */
static int size_is_refused(jitney_status status) {
    CHECK(status == JITNEY_INVALID_ARGUMENT);
    return strstr(jitney_last_error(), "args->size") != NULL;
}

/* A struct of every size: none that ends within a field is taken for one of some version. `first`
   bytes are those of the first, and behind `last` no field begins, as far as this one knows. */
#define CHECK_SIZES(type, call, first, last)                                                  \
    do {                                                                                      \
        union {                                                                               \
            type args;                                                                        \
            char bytes[sizeof(type) + 64];                                                    \
        } given;                                                                              \
        memset(&given, 0, sizeof given);                                                      \
        for (size_t size = 0; size < sizeof given; ++size) {                                  \
            const int may_end =                                                               \
                size >= (first) && size % 8 == 0 && (size <= (last) || size >= sizeof(type)); \
            given.args.size = size;                                                           \
            CHECK(size_is_refused(call(&given.args, NULL)) == !may_end);                      \
        }                                                                                     \
    } while (0)

static void sizes_of_all_structs(void) {
    const size_t first = offsetof(jitney_attention_args, causal) + sizeof(int32_t);
    const size_t values = offsetof(jitney_attention_args, logits_values);
    CHECK_SIZES(jitney_attention_args, jitney_attention, first, values);
    CHECK_SIZES(jitney_rotary_args, jitney_rotary_emb, sizeof(jitney_rotary_args), 0);
    CHECK_SIZES(jitney_append_kv_args, jitney_append_kv, sizeof(jitney_append_kv_args), 0);
    CHECK_SIZES(jitney_merge_states_args, jitney_merge_states, sizeof(jitney_merge_states_args), 0);
    CHECK_SIZES(jitney_rms_norm_args, jitney_rms_norm, sizeof(jitney_rms_norm_args), 0);
    CHECK_SIZES(jitney_gated_activation_args, jitney_gated_activation,
                sizeof(jitney_gated_activation_args), 0);
    const size_t power_of_two = offsetof(jitney_fp8_quantize_args, power_of_two);
    CHECK_SIZES(jitney_fp8_quantize_args, jitney_fp8_quantize, power_of_two, power_of_two);
    CHECK_SIZES(jitney_fp8_gemm_args, jitney_fp8_gemm, offsetof(jitney_fp8_gemm_args, scale_a),
                offsetof(jitney_fp8_gemm_args, group_indptr));
    CHECK_SIZES(jitney_fp8_linear_args, jitney_fp8_linear, sizeof(jitney_fp8_linear_args), 0);
    CHECK_SIZES(jitney_fp8_linear_backward_args, jitney_fp8_linear_backward,
                sizeof(jitney_fp8_linear_backward_args), 0);
    CHECK_SIZES(jitney_fp8_linear_inference_args, jitney_fp8_linear_inference,
                sizeof(jitney_fp8_linear_inference_args), 0);
}

static void enumerators(void) {
    problem p;
    make_problem(&p);
    CHECK_REFUSED(jitney_attn_prefill(&p.args, 7, NULL), JITNEY_INVALID_ARGUMENT, "variant is 7");
    CHECK_REFUSED(jitney_attn_decode(&p.args, -1, NULL), JITNEY_INVALID_ARGUMENT, "variant is -1");
    CHECK_REFUSED(jitney_push_backend(2), JITNEY_INVALID_ARGUMENT, "backend is 2");
    CHECK_REFUSED(jitney_attn_decode(&p.args, JITNEY_WGMMA, NULL), JITNEY_INVALID_ARGUMENT,
                  "no attn_decode of the variant wgmma");
    CHECK_REFUSED(jitney_attn_prefill(&p.args, JITNEY_WGMMA, NULL), JITNEY_UNSUPPORTED,
                  "attn_prefill_wgmma");
    /* A named kernel needs a GPU, whatever the variant. */
    for (int variant = JITNEY_SCALAR; variant <= JITNEY_MMA; ++variant) {
        CHECK_REFUSED(jitney_attn_prefill(&p.args, variant, NULL), JITNEY_UNSUPPORTED,
                      variant == JITNEY_MMA ? "attn_prefill_mma" : "attn_prefill_scalar");
        CHECK_REFUSED(jitney_attn_decode(&p.args, variant, NULL), JITNEY_UNSUPPORTED,
                      variant == JITNEY_MMA ? "attn_decode_mma" : "attn_decode_scalar");
    }
}

static void values(void) {
    problem p;
    make_problem(&p);
    p.args.scale = -1;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "scale");
    make_problem(&p);
    p.tk.shape[3] = 4;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "head_dim");
    /* What failed is forgotten where the next call succeeds. */
    make_problem(&p);
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK_TEXT(jitney_last_error(), "");
    CHECK_TEXT(jitney_last_compile_log(), "");
}

static void* fail_elsewhere(void* unused) {
    (void)unused;
    CHECK_TEXT(jitney_last_error(), "");
    CHECK_TEXT(jitney_last_run(), "");
    CHECK_REFUSED(jitney_pop(), JITNEY_INVALID_ARGUMENT, "pop");
    return NULL;
}

static void one_sentence_a_thread(void) {
    pthread_t other;
    CHECK_REFUSED(jitney_attention(NULL, NULL), JITNEY_INVALID_ARGUMENT, "jitney_attention_args");
    CHECK(pthread_create(&other, NULL, fail_elsewhere, NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(strstr(jitney_last_error(), "jitney_attention_args") != NULL);
}

void error_tests(void) {
    CHECK_TEXT(jitney_version(), PROJECT_VERSION);
    null_everywhere();
    sizes_of_the_struct();
    sizes_of_all_structs();
    enumerators();
    values();
    one_sentence_a_thread();
}
