/* Appending over host tensors: to a padded cache, rotated or not, and what is refused. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/check_plan.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

enum { kRequests = 2, kNew = 3, kHeads = 2, kDim = 4, kPlaces = 5, kPairs = 2, kTable = 6 };

typedef struct {
    float new_k[kNew * kHeads * kDim], new_v[kNew * kHeads * kDim];
    float k[kRequests * kPlaces * kHeads * kDim], v[kRequests * kPlaces * kHeads * kDim];
    float q[kNew * kHeads * kDim];
    float cos[kTable * kPairs], sin[kTable * kPairs];
    int32_t indptr[kRequests + 1], lens[kRequests];
    tensor tnew_k, tnew_v, tk, tv, tq, tcos, tsin, tindptr, tlens;
    jitney_append_kv_args args; /* without rotary */
} append;

static void make_append(append* made) {
    static const int32_t indptr[] = {0, 2, 3}, lens[] = {5, 2};
    memset(made, 0, sizeof *made);
    fill(made->new_k, sizeof made->new_k / sizeof(float), 1);
    fill(made->new_v, sizeof made->new_v / sizeof(float), 2);
    fill(made->q, sizeof made->q / sizeof(float), 3);
    for (int i = 0; i < kTable * kPairs; ++i) {
        made->cos[i] = cosf((float)i);
        made->sin[i] = sinf((float)i);
    }
    memcpy(made->indptr, indptr, sizeof indptr);
    memcpy(made->lens, lens, sizeof lens);
    make_tensor(&made->tnew_k, made->new_k, fp32, SIZES(kNew, kHeads, kDim));
    make_tensor(&made->tnew_v, made->new_v, fp32, SIZES(kNew, kHeads, kDim));
    make_tensor(&made->tk, made->k, fp32, SIZES(kRequests, kPlaces, kHeads, kDim));
    make_tensor(&made->tv, made->v, fp32, SIZES(kRequests, kPlaces, kHeads, kDim));
    make_tensor(&made->tq, made->q, fp32, SIZES(kNew, kHeads, kDim));
    make_tensor(&made->tcos, made->cos, fp32, SIZES(kTable, kPairs));
    make_tensor(&made->tsin, made->sin, fp32, SIZES(kTable, kPairs));
    make_tensor(&made->tindptr, made->indptr, int32, SIZES(kRequests + 1));
    make_tensor(&made->tlens, made->lens, int32, SIZES(kRequests));
    made->args.size = sizeof made->args;
    made->args.new_k = &made->tnew_k.view;
    made->args.new_v = &made->tnew_v.view;
    made->args.new_indptr = &made->tindptr.view;
    made->args.k = &made->tk.view;
    made->args.v = &made->tv.view;
    made->args.kv_lens = &made->tlens.view;
}

/* Where the new rows go: the last two of five keys, and the last of two. */
static const int kOutcome[kNew][2] = {{0, 3}, {0, 4}, {1, 1}};

static int is_appended(const append* a) {
    int right = 1;
    for (int row = 0; row < kNew; ++row)
        for (int h = 0; h < kHeads; ++h) {
            const int from = (row * kHeads + h) * kDim, place = kOutcome[row][1];
            const int to = ((kOutcome[row][0] * kPlaces + place) * kHeads + h) * kDim;
            for (int p = 0; p < kPairs; ++p) {
                const float x = a->new_k[from + 2 * p], y = a->new_k[from + 2 * p + 1];
                const int turned = a->args.cos != NULL;
                const float c = turned ? a->cos[place * kPairs + p] : 1.0f;
                const float s = turned ? a->sin[place * kPairs + p] : 0.0f;
                right = right && fabsf(a->k[to + 2 * p] - (x * c - y * s)) < 1e-5f;
                right = right && fabsf(a->k[to + 2 * p + 1] - (x * s + y * c)) < 1e-5f;
            }
            right = right && memcmp(a->v + to, a->new_v + from, kDim * sizeof(float)) == 0;
        }
    return right;
}

static void results(void) {
    append a;
    make_append(&a);
    CHECK_PASSED(jitney_append_kv(&a.args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    CHECK(is_appended(&a));
    CHECK(fabsf(a.k[0]) + fabsf(a.v[0]) < 1e-30f); /* nobody's new row */

    make_append(&a);
    a.args.cos = &a.tcos.view;
    a.args.sin = &a.tsin.view;
    a.args.q = a.args.q_out = &a.tq.view;
    const float before = a.q[0];
    CHECK_RUNS_PLAN(append_kv, &a.args);
    CHECK(is_appended(&a));
    CHECK(fabsf(a.q[0] - before) > 1e-6f);
}

static void refusals(void) {
    append a;
    static const struct {
        size_t offset;
        const char* name;
    } required[] = {{offsetof(jitney_append_kv_args, new_k), "new_k is null"},
                    {offsetof(jitney_append_kv_args, new_v), "new_v is null"},
                    {offsetof(jitney_append_kv_args, k), "k is null"},
                    {offsetof(jitney_append_kv_args, v), "v is null"}};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; ++i) {
        make_append(&a);
        const DLTensor* none = NULL;
        memcpy((char*)&a.args + required[i].offset, &none, sizeof none);
        CHECK_REFUSED(jitney_append_kv(&a.args, NULL), JITNEY_INVALID_ARGUMENT, required[i].name);
    }
    make_append(&a);
    a.args.style = 2;
    CHECK_REFUSED(jitney_append_kv(&a.args, NULL), JITNEY_INVALID_ARGUMENT, "style is 2");
    make_append(&a);
    a.args.cos = &a.tcos.view;
    CHECK_REFUSED(jitney_append_kv(&a.args, NULL), JITNEY_INVALID_ARGUMENT, "cos and sin");
    make_append(&a);
    a.lens[0] = 6;
    CHECK_REFUSED(jitney_append_kv(&a.args, NULL), JITNEY_INVALID_ARGUMENT, "room for 5 keys");
    make_append(&a);
    a.args.size = 1;
    CHECK_REFUSED(jitney_append_kv(&a.args, NULL), JITNEY_INVALID_ARGUMENT, "args->size");
    CHECK_TEXT(jitney_last_run(), "");
}

static void explained(void) {
    append a;
    const char* json = NULL;
    make_append(&a);
    CHECK_PASSED(jitney_explain_append_kv(&a.args, "sm_80", &json));
    CHECK(json != NULL && strstr(json, "\"chosen\":\"append_kv<format=fp32,") != NULL);
}

void append_kv_tests(void) {
    results();
    refusals();
    explained();
}
