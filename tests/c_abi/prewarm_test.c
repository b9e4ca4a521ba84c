/* Compiling ahead, and compiles that fail, with the compiler that compiles nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static const char* const kSpecs[] = {
    "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80",
    "rotary_emb<format=fp32,style=half_split,pairs=1>@sm_90a",
};

typedef struct {
    size_t calls, done, total;
    int statuses[3]; /* how many of each */
    int named;
    int well_formed;
} progress;

static void note(const jitney_prewarm_entry* entry, size_t done, size_t total, void* user) {
    progress* seen = user;
    ++seen->calls;
    seen->done = done;
    seen->total = total;
    ++seen->statuses[entry->status];
    seen->named += strcmp(entry->spec, kSpecs[0]) == 0 || strcmp(entry->spec, kSpecs[1]) == 0;
    const int failed = entry->status == JITNEY_PREWARM_FAILED;
    seen->well_formed +=
        failed ? entry->error[0] != '\0' : entry->error[0] == '\0' && entry->bytes > 0;
}

static progress prewarm(jitney_status* status) {
    progress seen;
    memset(&seen, 0, sizeof seen);
    *status = jitney_prewarm(kSpecs, 2, 2, note, &seen);
    CHECK(seen.calls == 2 && seen.done == 2 && seen.total == 2);
    CHECK(seen.named == 2 && seen.well_formed == 2);
    return seen;
}

static void set_failing(const char* directory, int failing) {
    char path[4096];
    snprintf(path, sizeof path, "%s/fail", directory);
    setenv("FAKE_NVRTC_FAIL_WHILE", path, 1);
    if (!failing) {
        remove(path);
        return;
    }
    FILE* file = fopen(path, "w");
    CHECK(file != NULL);
    if (file != NULL) fclose(file);
}

void prewarm_tests(const char* directory) {
    jitney_status status;
    set_failing(directory, 1);
    progress seen = prewarm(&status);
    CHECK_REFUSED(status, JITNEY_COMPILE_FAILED, "rotary_emb<");
    CHECK(strstr(jitney_last_error(), "1 more of 2") != NULL);
    CHECK(seen.statuses[JITNEY_PREWARM_FAILED] == 2);

    set_failing(directory, 0);
    seen = prewarm(&status);
    CHECK_PASSED(status);
    CHECK(seen.statuses[JITNEY_PREWARM_COMPILED] == 2);
    seen = prewarm(&status);
    CHECK_PASSED(status);
    CHECK(seen.statuses[JITNEY_PREWARM_CACHED] == 2);

    CHECK_PASSED(jitney_prewarm(kSpecs, 2, 0, NULL, NULL));
    CHECK_PASSED(jitney_prewarm(NULL, 0, 0, NULL, NULL));
    CHECK_REFUSED(jitney_prewarm(kSpecs, 2, -1, NULL, NULL), JITNEY_INVALID_ARGUMENT, "jobs is -1");
    CHECK_REFUSED(jitney_prewarm(kSpecs, SIZE_MAX, 0, NULL, NULL), JITNEY_INVALID_ARGUMENT,
                  "count is 18446744073709551615");
    const char* const wrong[] = {kSpecs[0], "attn_prefill_mma<head_dim=65>@sm_90a"};
    CHECK_REFUSED(jitney_prewarm(wrong, 2, 0, NULL, NULL), JITNEY_INVALID_ARGUMENT, "head_dim=65");
}

/* What serving a model asks for, as jitney_prewarm takes it. */
void model_tests(void) {
    jitney_serving_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.config =
        "{\"model_type\": \"mistral\", \"torch_dtype\": \"float16\", \"hidden_size\": 4096, "
        "\"num_attention_heads\": 32, \"num_key_value_heads\": 8}";
    args.arch = "sm_90a";
    const char* const* specs = NULL;
    size_t count = 0;
    CHECK_PASSED(jitney_serving_specs(&args, &specs, &count));
    CHECK(count == 18); /* two norms and a gate among them */
    CHECK(strcmp(specs[0], "attn_work_map<threads=256>@sm_90a") == 0);
    for (size_t i = 0; i < count; ++i) {
        if (strncmp(specs[i], "attn_prefill", 12) != 0) continue;
        CHECK(strstr(specs[i], "head_dim=128,format=fp16") != NULL);
        CHECK(strstr(specs[i], "window=1") != NULL);
    }
    CHECK_PASSED(jitney_prewarm(specs, count, 0, NULL, NULL));

    args.kv_cache = "padded";
    args.format = "bf16";
    args.style = "interleaved";
    CHECK_PASSED(jitney_serving_specs(&args, &specs, &count));
    for (size_t i = 0; i < count; ++i) {
        CHECK(strstr(specs[i], "paged") == NULL);
        CHECK(strstr(specs[i], "half_split") == NULL);
    }
    const char* json = NULL;
    CHECK_PASSED(jitney_serving_model(&args, &json));
    CHECK(strstr(json, "\"kind\":\"sliding_attention\"") != NULL);
    CHECK(strstr(json, "\"window_left\":4095") != NULL);

    /* A part that is not served: the texts are those of the rest. */
    args.config =
        "{\"model_type\": \"llama4_text\", \"num_attention_heads\": 40, "
        "\"num_key_value_heads\": 8, \"head_dim\": 128, \"hidden_size\": 5120}";
    args.style = NULL;
    CHECK_REFUSED(jitney_serving_specs(&args, &specs, &count), JITNEY_UNSUPPORTED,
                  "chunked_attention");
    CHECK(count > 0 && specs != NULL);

    args.format = "int8";
    CHECK_REFUSED(jitney_serving_specs(&args, &specs, &count), JITNEY_INVALID_ARGUMENT,
                  "format is 'int8'");
    CHECK(count == 0 && specs == NULL);
    args.format = "bf16";
    args.arch = NULL;
    CHECK_REFUSED(jitney_serving_specs(&args, &specs, &count), JITNEY_INVALID_ARGUMENT, "arch");
    CHECK_REFUSED(jitney_serving_specs(&args, NULL, &count), JITNEY_INVALID_ARGUMENT, "specs");
    CHECK_REFUSED(jitney_serving_model(&args, NULL), JITNEY_INVALID_ARGUMENT, "json");
    args.config = "{}";
    CHECK_REFUSED(jitney_serving_model(&args, &json), JITNEY_INVALID_ARGUMENT,
                  "num_attention_heads");
    CHECK(json == NULL);
    args.config = NULL;
    CHECK_REFUSED(jitney_serving_model(&args, &json), JITNEY_INVALID_ARGUMENT, "config is null");
}

/* A call whose kernel the compiler refuses: the log is kept, and goes with the next call. */
void compile_tests(const char* directory) {
    problem p;
    make_problem(&p);
    tensor* const all[] = {&p.tq, &p.tk, &p.tv, &p.tout};
    for (size_t i = 0; i < 4; ++i)
        all[i]->view.device.device_type = kDLCUDA;
    set_failing(directory, 1);
    CHECK_REFUSED(jitney_attn_prefill(&p.args, JITNEY_SCALAR, NULL), JITNEY_COMPILE_FAILED,
                  "attn_prefill_scalar<");
    CHECK(jitney_last_compile_log()[0] != '\0');
    CHECK_TEXT(jitney_last_run(), "");
    set_failing(directory, 0);
    CHECK_PASSED(jitney_attn_prefill(&p.args, JITNEY_SCALAR, NULL));
    CHECK_TEXT(jitney_last_compile_log(), "");
}
