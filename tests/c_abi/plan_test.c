/* Plans and workspaces: on the host, and what reaches a GPU's driver. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/fake_driver.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static void on_the_host(void) {
    problem p, next;
    jitney_attention_plan* plan = NULL;
    size_t bytes = 1;
    const char* json = NULL;
    make_problem(&p);
    p.args.causal = 1;
    CHECK_PASSED(jitney_attention_plan_create(&p.args, &plan));
    CHECK(plan != NULL);
    CHECK_PASSED(jitney_attention_plan_workspace(plan, &bytes));
    CHECK(bytes == 0);
    bytes = 1;
    CHECK_PASSED(jitney_attention_workspace(&p.args, &bytes));
    CHECK(bytes == 0);
    CHECK_PASSED(jitney_attention_plan_explain(plan, &json));
    CHECK(json != NULL && strstr(json, "\"chosen\":\"reference\"") != NULL);
    CHECK_PASSED(jitney_attention_plan_run(plan, &p.args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    CHECK(is_right(&p));

    make_problem(&next); /* other data */
    fill(next.q, kBatch * kQLen * kQHeads * kHeadDim, 77);
    next.args.causal = 1;
    CHECK_PASSED(jitney_attention_plan_run(plan, &next.args, NULL));
    CHECK(is_right(&next));

    next.args.causal = 0;
    CHECK_REFUSED(jitney_attention_plan_run(plan, &next.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "causal");
    CHECK_TEXT(jitney_last_run(), "");

    /* The functions of all plans take it, and it runs the calls of its operation alone. */
    jitney_fp8_gemm_args product = {.size = sizeof product};
    product.a = product.b = product.out = product.dequant_scale = p.args.q;
    CHECK_REFUSED(jitney_fp8_gemm_plan_run(plan, &product, NULL), JITNEY_INVALID_ARGUMENT,
                  "one of attention");
    CHECK_PASSED(jitney_plan_workspace(plan, &bytes));
    CHECK(bytes == 0);
    CHECK_PASSED(jitney_plan_explain(plan, &json));
    CHECK(json != NULL && strstr(json, "\"chosen\":\"reference\"") != NULL);
    CHECK_PASSED(jitney_plan_destroy(plan));
    CHECK_PASSED(jitney_attention_plan_destroy(NULL));
    CHECK_PASSED(jitney_plan_destroy(NULL));
}

static void bad_arguments(void) {
    problem p;
    jitney_attention_plan* plan = NULL;
    const char* json = "";
    size_t bytes = 1;
    static _Alignas(256) char memory[1024];
    make_problem(&p);
    CHECK_REFUSED(jitney_attention_plan_create(NULL, &plan), JITNEY_INVALID_ARGUMENT, "args");
    CHECK(plan == NULL);
    CHECK_REFUSED(jitney_attention_plan_create(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "plan");
    p.args.scale = -1;
    CHECK_REFUSED(jitney_attention_plan_create(&p.args, &plan), JITNEY_INVALID_ARGUMENT, "scale");
    CHECK(plan == NULL);
    p.args.scale = 0;
    CHECK_REFUSED(jitney_attention_plan_run(NULL, &p.args, NULL), JITNEY_INVALID_ARGUMENT, "plan");
    CHECK_REFUSED(jitney_attention_plan_workspace(NULL, &bytes), JITNEY_INVALID_ARGUMENT, "plan");
    CHECK(bytes == 0);
    CHECK_REFUSED(jitney_attention_plan_explain(NULL, &json), JITNEY_INVALID_ARGUMENT, "plan");
    CHECK(json == NULL);
    CHECK_REFUSED(jitney_plan_workspace(NULL, &bytes), JITNEY_INVALID_ARGUMENT, "plan is null");
    CHECK_REFUSED(jitney_plan_explain(NULL, &json), JITNEY_INVALID_ARGUMENT, "plan is null");
    CHECK_REFUSED(jitney_attention_workspace(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "bytes");
    CHECK_REFUSED(jitney_init_workspace(NULL, 1 << 20, 0, NULL), JITNEY_INVALID_ARGUMENT, "null");
    CHECK_REFUSED(jitney_init_workspace(memory, 100, 0, NULL), JITNEY_INVALID_ARGUMENT, "100");
    CHECK_REFUSED(jitney_init_workspace(memory + 8, 1 << 20, 0, NULL), JITNEY_INVALID_ARGUMENT,
                  "256");
    p.args.workspace_bytes = 100;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "workspace");
    p.args.workspace_bytes = 0;
    p.args.reserved = 1;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "reserved");

    /* Made, and then run without what it needs. */
    p.args.reserved = 0;
    CHECK_PASSED(jitney_attention_plan_create(&p.args, &plan));
    p.args.q = NULL;
    CHECK_REFUSED(jitney_attention_plan_run(plan, &p.args, NULL), JITNEY_INVALID_ARGUMENT, "q");
    CHECK_REFUSED(jitney_attention_plan_run(plan, NULL, NULL), JITNEY_INVALID_ARGUMENT, "args");
    p.args.q = &p.tq.view;
    p.tq.view.data = NULL;
    CHECK_REFUSED(jitney_attention_plan_run(plan, &p.args, NULL), JITNEY_INVALID_ARGUMENT, "q");
    CHECK_PASSED(jitney_attention_plan_destroy(plan));
}

void plan_tests(void) {
    on_the_host();
    bad_arguments();
}

/* bf16 [1, 1, 4, 64] beside 20000 keys of one head, which are divided among blocks. The fake driver
   computes nothing, so that the data need not exist. */
static void make_long_problem(problem* made, void* somewhere) {
    tensor* const all[] = {&made->tq, &made->tk, &made->tv, &made->tout};
    make_problem(made);
    make_tensor(&made->tq, somewhere, bf16, SIZES(1, 1, 4, 64));
    make_tensor(&made->tk, (char*)somewhere + 4096, bf16, SIZES(1, 20000, 1, 64));
    make_tensor(&made->tv, (char*)somewhere + 8192, bf16, SIZES(1, 20000, 1, 64));
    make_tensor(&made->tout, (char*)somewhere + 1024, bf16, SIZES(1, 1, 4, 64));
    for (size_t i = 0; i < 4; ++i)
        all[i]->view.device.device_type = kDLCUDA;
}

void plan_gpu_tests(void) {
    problem p;
    jitney_attention_plan* plan = NULL;
    size_t bytes = 0, again = 0;
    const char* json = NULL;
    static _Alignas(256) char somewhere[16384];
    make_long_problem(&p, somewhere);
    CHECK_PASSED(jitney_attention_plan_create(&p.args, &plan));
    CHECK_PASSED(jitney_attention_plan_workspace(plan, &bytes));
    CHECK(bytes > 65536);
    CHECK_PASSED(jitney_attention_workspace(&p.args, &again));
    CHECK(bytes == again);
    CHECK_PASSED(jitney_attention_plan_explain(plan, &json));
    CHECK(json != NULL && strstr(json, "attn_decode_cluster<head_dim=64") != NULL);
    CHECK(json != NULL && strstr(json, "\"batch_invariant\":false") != NULL);

    void* memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (memory == NULL) return;
    CHECK_PASSED(jitney_init_workspace(memory, bytes, 0, NULL));
    CHECK_REFUSED(jitney_init_workspace(memory, bytes, 7, NULL), JITNEY_NO_DEVICE, "GPU 7");
    p.args.workspace = memory;
    p.args.workspace_bytes = bytes;
    const int allocations = fake_allocations();
    const int before = fake_launches();
    fake_capture(1);
    CHECK_PASSED(jitney_attention_plan_run(plan, &p.args, NULL));
    CHECK_PASSED(jitney_attention_plan_run(plan, &p.args, NULL));
    fake_capture(0);
    CHECK(fake_launches() == before + 2);
    CHECK(fake_allocations() == allocations);
    p.args.workspace_bytes = bytes - 1;
    CHECK_REFUSED(jitney_attention_plan_run(plan, &p.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "workspace");
    CHECK(fake_launches() == before + 2);
    CHECK_PASSED(jitney_attention_plan_destroy(plan));

    p.args.workspace = NULL;
    p.args.workspace_bytes = 0;
    p.args.batch_invariant = 1;
    CHECK_PASSED(jitney_explain_attention(&p.args, NULL, &json));
    CHECK(json != NULL && strstr(json, "\"batch_invariant\":true") != NULL);
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    free(memory);
}
