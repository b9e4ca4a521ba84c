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
