/* Rotary over host tensors: both styles, positions of both types, in place, q alone. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/check_plan.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

enum { kLength = 4, kHeads = 3, kDim = 6, kPairs = 2, kPositions = 7 };

typedef struct {
    float q[kLength * kHeads * kDim], q_out[kLength * kHeads * kDim];
    float k[kLength * kDim], k_out[kLength * kDim]; /* one head */
    float cos[kPositions * kPairs], sin[kPositions * kPairs];
    int64_t positions[kLength];
    int32_t short_positions[kLength];
    tensor tq, tq_out, tk, tk_out, tcos, tsin, tpositions;
    jitney_rotary_args args; /* q, q_out, cos and sin */
} rotary;

static void make_rotary(rotary* made) {
    memset(made, 0, sizeof *made);
    fill(made->q, sizeof made->q / sizeof(float), 5);
    fill(made->k, sizeof made->k / sizeof(float), 6);
    for (int i = 0; i < kPositions * kPairs; ++i) {
        made->cos[i] = cosf((float)i);
        made->sin[i] = sinf((float)i);
    }
    for (int i = 0; i < kLength; ++i) {
        made->positions[i] = (3 * i + 5) % kPositions;
        made->short_positions[i] = (int32_t)made->positions[i];
    }
    make_tensor(&made->tq, made->q, fp32, SIZES(1, kLength, kHeads, kDim));
    make_tensor(&made->tq_out, made->q_out, fp32, SIZES(1, kLength, kHeads, kDim));
    make_tensor(&made->tk, made->k, fp32, SIZES(1, kLength, 1, kDim));
    make_tensor(&made->tk_out, made->k_out, fp32, SIZES(1, kLength, 1, kDim));
    make_tensor(&made->tcos, made->cos, fp32, SIZES(kPositions, kPairs));
    make_tensor(&made->tsin, made->sin, fp32, SIZES(kPositions, kPairs));
    make_tensor(&made->tpositions, made->positions, int64, SIZES(kLength));
    made->args.size = sizeof made->args;
    made->args.q = &made->tq.view;
    made->args.q_out = &made->tq_out.view;
    made->args.cos = &made->tcos.view;
    made->args.sin = &made->tsin.view;
}

static int is_head_right(const rotary* r, const float* x, const float* y, int row) {
    const int64_t at = r->args.positions != NULL ? r->positions[row] : row;
    int right = 1;
    for (int p = 0; p < kPairs; ++p) {
        const int half = r->args.style == JITNEY_HALF_SPLIT;
        const int a = half ? p : 2 * p;
        const int b = half ? p + kPairs : 2 * p + 1;
        const float c = r->cos[at * kPairs + p];
        const float s = r->sin[at * kPairs + p];
        right = right && fabsf(y[a] - (x[a] * c - x[b] * s)) < 1e-5f;
        right = right && fabsf(y[b] - (x[a] * s + x[b] * c)) < 1e-5f;
    }
    for (int d = 2 * kPairs; d < kDim; ++d)
        right = right && fabsf(y[d] - x[d]) < 1e-7f;
    return right;
}

static int are_right(const rotary* r, const float* x, const float* y, int heads) {
    int right = 1;
    for (int row = 0; row < kLength; ++row)
        for (int h = 0; h < heads; ++h) {
            const int at = (row * heads + h) * kDim;
            right = right && is_head_right(r, x + at, y + at, row);
        }
    return right;
}

static void results(void) {
    rotary r;
    for (int style = JITNEY_INTERLEAVED; style <= JITNEY_HALF_SPLIT; ++style) {
        make_rotary(&r);
        r.args.style = style;
        CHECK_PASSED(jitney_rotary_emb(&r.args, NULL));
        CHECK_TEXT(jitney_last_run(), "reference");
        CHECK(are_right(&r, r.q, r.q_out, kHeads));

        r.args.k = &r.tk.view;
        r.args.k_out = &r.tk_out.view;
        r.args.positions = &r.tpositions.view;
        CHECK_RUNS_PLAN(rotary, &r.args);
        CHECK(are_right(&r, r.q, r.q_out, kHeads));
        CHECK(are_right(&r, r.k, r.k_out, 1));

        memset(r.k_out, 0, sizeof r.k_out);
        r.tpositions.view.data = r.short_positions;
        r.tpositions.view.dtype = int32;
        CHECK_PASSED(jitney_rotary_emb(&r.args, NULL));
        CHECK(are_right(&r, r.k, r.k_out, 1));
    }
    make_rotary(&r);
    float before[sizeof r.q / sizeof(float)];
    memcpy(before, r.q, sizeof before);
    r.args.q_out = &r.tq.view;
    CHECK_PASSED(jitney_rotary_emb(&r.args, NULL));
    CHECK(are_right(&r, before, r.q, kHeads));
}

static void refusals(void) {
    rotary r;
    static const struct {
        size_t offset;
        const char* name;
    } required[] = {{offsetof(jitney_rotary_args, q), "q is null"},
                    {offsetof(jitney_rotary_args, q_out), "q_out is null"},
                    {offsetof(jitney_rotary_args, cos), "cos is null"},
                    {offsetof(jitney_rotary_args, sin), "sin is null"}};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; ++i) {
        make_rotary(&r);
        const DLTensor* none = NULL;
        memcpy((char*)&r.args + required[i].offset, &none, sizeof none);
        CHECK_REFUSED(jitney_rotary_emb(&r.args, NULL), JITNEY_INVALID_ARGUMENT, required[i].name);
    }
    make_rotary(&r);
    r.args.k = &r.tk.view; /* and no k_out */
    CHECK_REFUSED(jitney_rotary_emb(&r.args, NULL), JITNEY_INVALID_ARGUMENT, "k_out");
    make_rotary(&r);
    r.args.style = 2;
    CHECK_REFUSED(jitney_rotary_emb(&r.args, NULL), JITNEY_INVALID_ARGUMENT, "style is 2");
    make_rotary(&r);
    r.args.reserved = 1;
    CHECK_REFUSED(jitney_rotary_emb(&r.args, NULL), JITNEY_INVALID_ARGUMENT, "reserved");
    make_rotary(&r);
    r.args.size = sizeof r.args - 1;
    CHECK_REFUSED(jitney_rotary_emb(&r.args, NULL), JITNEY_INVALID_ARGUMENT, "args->size");
    make_rotary(&r);
    r.positions[0] = kPositions;
    r.args.positions = &r.tpositions.view;
    CHECK_REFUSED(jitney_rotary_emb(&r.args, NULL), JITNEY_INVALID_ARGUMENT, "position");
    CHECK_TEXT(jitney_last_run(), "");
}

static void explained(void) {
    rotary r;
    const char* json = NULL;
    make_rotary(&r);
    CHECK_PASSED(jitney_explain_rotary(&r.args, "sm_80", &json));
    CHECK(json != NULL && strstr(json, "\"chosen\":\"rotary_emb<") != NULL);
}

void rotary_tests(void) {
    results();
    refusals();
    explained();
}
