/* A call of host tensors as a run of its plan. */
#ifndef TESTS_C_ABI_CHECK_PLAN_H
#define TESTS_C_ABI_CHECK_PLAN_H

#include <stdint.h>
#include <string.h>

#include "tests/c_abi/check.h"

/* What `args` asks of jitney_NAME_plan is computed once, by the run. */
#define CHECK_RUNS_PLAN(name, args)                                                              \
    do {                                                                                         \
        jitney_plan* made = NULL;                                                                \
        const char* told = NULL;                                                                 \
        size_t needed = 1;                                                                       \
        CHECK_REFUSED(jitney_##name##_plan_create(args, NULL), JITNEY_INVALID_ARGUMENT, "plan"); \
        CHECK_PASSED(jitney_##name##_plan_create(args, &made));                                  \
        CHECK_PASSED(jitney_plan_workspace(made, &needed));                                      \
        CHECK(needed == 0);                                                                      \
        CHECK_PASSED(jitney_plan_explain(made, &told));                                          \
        CHECK(told != NULL && strstr(told, "reference") != NULL);                                \
        CHECK_REFUSED(jitney_##name##_plan_run(NULL, args, NULL), JITNEY_INVALID_ARGUMENT,       \
                      "jitney_" #name "_plan_create");                                           \
        CHECK_REFUSED(jitney_##name##_plan_run(made, NULL, NULL), JITNEY_INVALID_ARGUMENT,       \
                      "args");                                                                   \
        CHECK_PASSED(jitney_##name##_plan_run(made, args, NULL));                                \
        CHECK_TEXT(jitney_last_run(), "reference");                                              \
        CHECK_PASSED(jitney_plan_destroy(made));                                                 \
    } while (0)

#endif
