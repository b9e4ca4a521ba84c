/* The list of operations as JSON, and calls by the name of one. */
#include <stdio.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static int has(const char* text, const char* part) {
    return text != NULL && strstr(text, part) != NULL;
}

/* "name":"window_left" ... "offset":N of its last member, as a binding would read it. */
static size_t offset_of(const char* json, const char* field, int member) {
    char name[64];
    snprintf(name, sizeof name, "\"name\":\"%s\"", field);
    const char* at = strstr(json, name);
    at = at == NULL ? NULL : strstr(at, "\"c\":[");
    for (int i = 0; at != NULL && i <= member; ++i)
        at = strstr(at + 1, "\"offset\":");
    size_t offset = (size_t)-1;
    if (at != NULL) sscanf(at, "\"offset\":%zu", &offset);
    return offset;
}

static void list(void) {
    const char* json = NULL;
    CHECK_PASSED(jitney_operations_json(&json));
    CHECK(has(json, "\"name\":\"append_kv\"") && has(json, "\"name\":\"fp8_linear_backward\""));
    CHECK(has(json, "\"c_struct\":\"jitney_attention_args\""));
    CHECK(offset_of(json, "q", 0) == offsetof(jitney_attention_args, q));
    CHECK(offset_of(json, "scale", 0) == offsetof(jitney_attention_args, scale));
    CHECK(offset_of(json, "window_left", 0) == offsetof(jitney_attention_args, has_window));
    CHECK(offset_of(json, "window_left", 1) == offsetof(jitney_attention_args, window_left));
    CHECK(offset_of(json, "workspace", 1) == offsetof(jitney_attention_args, workspace_bytes));
    CHECK(offset_of(json, "history", 0) ==
          offsetof(jitney_fp8_linear_args, recipe) + offsetof(jitney_fp8_recipe, history));
    CHECK(offset_of(json, "weight_codes", 0) == offsetof(jitney_fp8_linear_args, weight_codes));
    CHECK_REFUSED(jitney_operations_json(NULL), JITNEY_INVALID_ARGUMENT, "json is null");
}

static void calls(void) {
    problem p;
    make_problem(&p);
    p.args.causal = 1;
    CHECK_PASSED(jitney_run_operation("attention", &p.args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    CHECK(is_right(&p));
    CHECK_REFUSED(jitney_run_operation("attend", &p.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "no operation \"attend\"; there are attention, rotary");
    CHECK_TEXT(jitney_last_run(), "");
    CHECK_REFUSED(jitney_run_operation(NULL, &p.args, NULL), JITNEY_INVALID_ARGUMENT, "name");
    CHECK_REFUSED(jitney_run_operation("rotary", NULL, NULL), JITNEY_INVALID_ARGUMENT,
                  "jitney_rotary_args");

    const char *named = NULL, *own = NULL;
    CHECK_PASSED(jitney_explain_operation("attention", &p.args, "sm_80", &named));
    CHECK_PASSED(jitney_explain_attention(&p.args, "sm_80", &own));
    CHECK(named != NULL && own != NULL && strcmp(named, own) == 0);
    CHECK(has(named, "\"before\":[]"));
    CHECK_REFUSED(jitney_explain_operation("attend", &p.args, "sm_80", &named),
                  JITNEY_INVALID_ARGUMENT, "attend");
    CHECK(named == NULL);

    size_t bytes = 1;
    jitney_rotary_args rotary = {.size = sizeof rotary};
    rotary.q = rotary.q_out = rotary.cos = rotary.sin = &p.tq.view;
    CHECK_PASSED(jitney_rotary_workspace(&rotary, &bytes));
    CHECK(bytes == 0);
    CHECK_REFUSED(jitney_rotary_workspace(&rotary, NULL), JITNEY_INVALID_ARGUMENT, "bytes");
}

void operations_tests(void) {
    list();
    calls();
}
