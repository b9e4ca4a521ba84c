/* Explanations, which need no data and no GPU. */
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static int has(const char* text, const char* part) {
    return text != NULL && strstr(text, part) != NULL;
}

void explain_tests(void) {
    tensor q, kv;
    const char* json = NULL;
    make_tensor(&q, NULL, bf16, SIZES(1, 4096, 32, 128));
    make_tensor(&kv, NULL, bf16, SIZES(1, 4096, 8, 128));
    jitney_attention_args args = {.size = sizeof args};
    args.q = args.out = &q.view;
    args.k = args.v = &kv.view;
    args.causal = 1;
    CHECK_PASSED(jitney_explain_attention(&args, "sm_80", &json));
    CHECK(has(json, "{\"arch\":\"sm_80\",\"chosen\":\"attn_prefill_mma<head_dim=128,"));
    CHECK(has(json, "\"candidates\":[{\"kernel\":\"attn_"));
    CHECK(has(json, "\"accepted\":true,\"reason\":\"\"}"));
    CHECK(has(json, "\"workspace_bytes\":"));

    q.shape[0] = kv.shape[0] = 0; /* nothing to compute */
    CHECK_PASSED(jitney_explain_attention(&args, "sm_80", &json));
    CHECK(has(json, "\"chosen\":null") && has(json, "\"candidates\":[]"));

    CHECK_REFUSED(jitney_explain_attention(&args, "sm_ninety", &json), JITNEY_INVALID_ARGUMENT,
                  "sm_ninety");
    CHECK(json == NULL);
    /* These tensors are in host memory, and name no GPU. */
    CHECK_REFUSED(jitney_explain_attention(&args, NULL, &json), JITNEY_NO_DEVICE, "arch");
}
