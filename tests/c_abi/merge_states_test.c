/* Merging partial results over host tensors: as two tensors, as one, and what is refused. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/check_plan.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

enum { kRows = 3, kHeads = 2, kDim = 4, kElements = kRows * kHeads * kDim };

typedef struct {
    float outs[2 * kElements]; /* [2, rows, heads, dim] */
    float lses[2 * kRows * kHeads];
    float out[kElements];
    float lse[kRows * kHeads];
    tensor tfirst, tsecond, tboth, tfirst_lse, tsecond_lse, tboth_lse, tout, tlse;
    jitney_partial_state parts[2];
    jitney_merge_states_args args; /* of two tensors */
} merge;

static void make_merge(merge* made) {
    memset(made, 0, sizeof *made);
    fill(made->outs, 2 * kElements, 3);
    fill(made->lses, 2 * kRows * kHeads, 4);
    made->lses[1] = made->lses[kRows * kHeads + 1] = -INFINITY; /* nothing seen at all */
    made->lses[2] = -INFINITY;
    for (int d = 0; d < kDim; ++d)
        made->outs[2 * kDim + d] = NAN; /* has no weight */
    make_tensor(&made->tfirst, made->outs, fp32, SIZES(kRows, kHeads, kDim));
    make_tensor(&made->tsecond, made->outs + kElements, fp32, SIZES(kRows, kHeads, kDim));
    make_tensor(&made->tboth, made->outs, fp32, SIZES(2, kRows, kHeads, kDim));
    make_tensor(&made->tfirst_lse, made->lses, fp32, SIZES(kRows, kHeads));
    make_tensor(&made->tsecond_lse, made->lses + kRows * kHeads, fp32, SIZES(kRows, kHeads));
    make_tensor(&made->tboth_lse, made->lses, fp32, SIZES(2, kRows, kHeads));
    make_tensor(&made->tout, made->out, fp32, SIZES(kRows, kHeads, kDim));
    make_tensor(&made->tlse, made->lse, fp32, SIZES(kRows, kHeads));
    made->parts[0] = (jitney_partial_state){&made->tfirst.view, &made->tfirst_lse.view};
    made->parts[1] = (jitney_partial_state){&made->tsecond.view, &made->tsecond_lse.view};
    made->args.size = sizeof made->args;
    made->args.parts = made->parts;
    made->args.part_count = 2;
    made->args.out = &made->tout.view;
    made->args.lse = &made->tlse.view;
}

static int is_merged(const merge* m) {
    int right = 1;
    for (int row = 0; row < kRows * kHeads; ++row) {
        const float a = m->lses[row], b = m->lses[kRows * kHeads + row];
        const float wa = a == -INFINITY ? 0.0f : expf(a), wb = b == -INFINITY ? 0.0f : expf(b);
        const float sum = wa + wb;
        if (sum > 0.0f) {
            right = right && fabsf(m->lse[row] - logf(sum)) < 1e-5f;
        } else {
            right = right && m->lse[row] == -INFINITY;
        }
        for (int d = 0; d < kDim; ++d) {
            const float x = wa > 0.0f ? wa * m->outs[row * kDim + d] : 0.0f;
            const float y = wb > 0.0f ? wb * m->outs[kElements + row * kDim + d] : 0.0f;
            const float want = sum > 0.0f ? (x + y) / sum : 0.0f;
            right = right && fabsf(m->out[row * kDim + d] - want) < 1e-5f;
        }
    }
    return right;
}

static void results(void) {
    merge m;
    make_merge(&m);
    CHECK_PASSED(jitney_merge_states(&m.args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    CHECK(is_merged(&m));

    make_merge(&m);
    m.parts[0] = (jitney_partial_state){&m.tboth.view, &m.tboth_lse.view};
    m.args.part_count = 1;
    CHECK_RUNS_PLAN(merge_states, &m.args);
    CHECK(is_merged(&m));

    make_merge(&m);
    m.args.lse = NULL;
    CHECK_PASSED(jitney_merge_states(&m.args, NULL));
}

static void refusals(void) {
    merge m;
    make_merge(&m);
    m.args.parts = NULL;
    CHECK_REFUSED(jitney_merge_states(&m.args, NULL), JITNEY_INVALID_ARGUMENT, "parts is null");
    make_merge(&m);
    m.args.part_count = 17;
    CHECK_REFUSED(jitney_merge_states(&m.args, NULL), JITNEY_INVALID_ARGUMENT, "part_count is 17");
    make_merge(&m);
    m.args.part_count = 1;
    CHECK_REFUSED(jitney_merge_states(&m.args, NULL), JITNEY_INVALID_ARGUMENT, "1 partial result");
    make_merge(&m);
    m.parts[1].lse = NULL;
    CHECK_REFUSED(jitney_merge_states(&m.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "a part's lse is null");
    make_merge(&m);
    m.args.out = NULL;
    CHECK_REFUSED(jitney_merge_states(&m.args, NULL), JITNEY_INVALID_ARGUMENT, "out is null");
    make_merge(&m);
    m.args.size = 3;
    CHECK_REFUSED(jitney_merge_states(&m.args, NULL), JITNEY_INVALID_ARGUMENT, "args->size");
    CHECK_TEXT(jitney_last_run(), "");
}

static void explained(void) {
    merge m;
    const char* json = NULL;
    make_merge(&m);
    CHECK_PASSED(jitney_explain_merge_states(&m.args, "sm_80", &json));
    CHECK(json != NULL && strstr(json, "\"chosen\":\"attn_merge_states<head_dim=4,") != NULL);
}

void merge_states_tests(void) {
    results();
    refusals();
    explained();
}
