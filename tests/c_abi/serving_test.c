/* What a server asks of attention, field by field: options, lengths, ragged queries, pages, new
   keys. The dense problem tells what has to come out. */
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static void options(void) {
    problem p;
    tensor slopes, sinks;
    make_problem(&p);
    p.args.has_window = 1;
    p.args.window_left = 1;
    p.args.window_right = -1;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
    p.args.window_left = 0; /* one key each */
    p.args.window_right = 0;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));

    make_problem(&p);
    make_tensor(&slopes, p.slopes, fp32, SIZES(kQHeads));
    make_tensor(&sinks, p.sinks, fp32, SIZES(kQHeads));
    p.args.lse = &p.tlse.view;
    p.args.softcap = 0.5f;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
    p.args.alibi_slopes = &slopes.view;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
    p.args.sinks = &sinks.view;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
}

/* Keys behind a request's length are as if masked. */
static void lengths(void) {
    problem p;
    tensor lens;
    int32_t numbers[kBatch] = {kKvLen, 2};
    make_problem(&p);
    make_tensor(&lens, numbers, int32, SIZES(kBatch));
    p.args.kv_lens = &lens.view;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    for (int b = 0; b < kBatch; ++b)
        for (int i = 0; i < kQLen; ++i)
            for (int j = 0; j < kKvLen; ++j)
                p.mask[(b * kQLen + i) * kKvLen + j] = j < numbers[b];
    p.args.mask = &p.tmask.view; /* for the comparison alone */
    CHECK(is_right(&p));
}

/* The batch, packed, is the same memory. */
static void ragged(void) {
    problem p;
    tensor qo_indptr, kv_indptr;
    int32_t q_starts[kBatch + 1] = {0, kQLen, 2 * kQLen};
    int32_t kv_starts[kBatch + 1] = {0, kKvLen, 2 * kKvLen};
    make_problem(&p);
    make_tensor(&p.tq, p.q, fp32, SIZES(kBatch * kQLen, kQHeads, kHeadDim));
    make_tensor(&p.tk, p.k, fp32, SIZES(kBatch * kKvLen, kKvHeads, kHeadDim));
    make_tensor(&p.tv, p.v, fp32, SIZES(kBatch * kKvLen, kKvHeads, kHeadDim));
    make_tensor(&p.tout, p.out, fp32, SIZES(kBatch * kQLen, kQHeads, kHeadDim));
    make_tensor(&qo_indptr, q_starts, int32, SIZES(kBatch + 1));
    make_tensor(&kv_indptr, kv_starts, int32, SIZES(kBatch + 1));
    p.args.qo_indptr = &qo_indptr.view;
    p.args.kv_indptr = &kv_indptr.view;
    p.args.causal = 1;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));

    memset(p.out, 0, sizeof p.out);
    p.args.qo_indptr_host = q_starts;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
    p.args.qo_indptr = NULL;
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, "qo_indptr_host");
}

enum { kPageSize = 2, kPagesEach = 3, kPages = 7, kRow = kKvHeads * kHeadDim };

/* Pages 1, 3, 5 and 6, 4, 2. */
static int page_of(int b, int page) {
    return b == 0 ? 1 + 2 * page : 6 - 2 * page;
}

static void scatter(float* pool, const float* dense) {
    for (int b = 0; b < kBatch; ++b)
        for (int j = 0; j < kKvLen; ++j) {
            const int row = page_of(b, j / kPageSize) * kPageSize + j % kPageSize;
            memcpy(pool + row * kRow, dense + (b * kKvLen + j) * kRow, kRow * sizeof *pool);
        }
}

/* A problem whose keys lie in pages. */
typedef struct {
    problem p;
    float k_pool[kPages * kPageSize * kRow], v_pool[kPages * kPageSize * kRow];
    int32_t lens[kBatch], table[kBatch * kPagesEach], slots[kBatch * kKvLen];
    int32_t rows[kBatch], starts[kBatch + 1], last[kBatch];
    tensor tlens, ttable, tslots, trows, tstarts, tindices, tlast;
} paged;

static void make_paged(paged* made) {
    memset(made, 0, sizeof *made);
    make_problem(&made->p);
    scatter(made->k_pool, made->p.k);
    scatter(made->v_pool, made->p.v);
    for (int b = 0; b < kBatch; ++b) {
        made->lens[b] = kKvLen;
        made->last[b] = kKvLen - (kPagesEach - 1) * kPageSize;
        made->rows[b] = kBatch - 1 - b; /* the token table has them the other way round */
        made->starts[b + 1] = (b + 1) * kPagesEach;
        for (int i = 0; i < kPagesEach; ++i)
            made->table[b * kPagesEach + i] = page_of(b, i);
        for (int j = 0; j < kKvLen; ++j)
            made->slots[made->rows[b] * kKvLen + j] =
                page_of(b, j / kPageSize) * kPageSize + j % kPageSize;
    }
    make_tensor(&made->p.tk, made->k_pool, fp32, SIZES(kPages, kPageSize, kKvHeads, kHeadDim));
    make_tensor(&made->p.tv, made->v_pool, fp32, SIZES(kPages, kPageSize, kKvHeads, kHeadDim));
    make_tensor(&made->tlens, made->lens, int32, SIZES(kBatch));
    make_tensor(&made->ttable, made->table, int32, SIZES(kBatch, kPagesEach));
    make_tensor(&made->tslots, made->slots, int32, SIZES(kBatch, kKvLen));
    make_tensor(&made->trows, made->rows, int32, SIZES(kBatch));
    make_tensor(&made->tstarts, made->starts, int32, SIZES(kBatch + 1));
    make_tensor(&made->tindices, made->table, int32, SIZES(kBatch * kPagesEach));
    make_tensor(&made->tlast, made->last, int32, SIZES(kBatch));
}

static void pages(void) {
    paged a;
    make_paged(&a);
    a.p.args.block_table = &a.ttable.view;
    a.p.args.kv_lens = &a.tlens.view;
    a.p.args.max_kv_len = kKvLen;
    CHECK_PASSED(jitney_attention(&a.p.args, NULL));
    CHECK(is_right(&a.p));

    make_paged(&a);
    a.p.args.kv_page_indptr = &a.tstarts.view;
    a.p.args.kv_page_indices = &a.tindices.view;
    a.p.args.last_page_len = &a.tlast.view;
    CHECK_PASSED(jitney_attention(&a.p.args, NULL));
    CHECK(is_right(&a.p));

    make_paged(&a);
    make_tensor(&a.p.tk, a.k_pool, fp32, SIZES(kPages * kPageSize, kKvHeads, kHeadDim));
    make_tensor(&a.p.tv, a.v_pool, fp32, SIZES(kPages * kPageSize, kKvHeads, kHeadDim));
    a.p.args.req_to_token = &a.tslots.view;
    a.p.args.req_pool_indices = &a.trows.view;
    a.p.args.kv_lens = &a.tlens.view;
    CHECK_PASSED(jitney_attention(&a.p.args, NULL));
    CHECK(is_right(&a.p));
}

/* The last key and value of each request come from beside the cache, and are in it afterwards. */
static void new_keys(void) {
    problem p;
    float new_k[kBatch * kRow], new_v[kBatch * kRow];
    float k[sizeof p.k / sizeof(float)];
    tensor tnew_k, tnew_v, lens;
    int32_t numbers[kBatch] = {kKvLen, kKvLen};
    make_problem(&p);
    memcpy(k, p.k, sizeof k);
    make_tensor(&tnew_k, new_k, fp32, SIZES(kBatch, 1, kKvHeads, kHeadDim));
    make_tensor(&tnew_v, new_v, fp32, SIZES(kBatch, 1, kKvHeads, kHeadDim));
    make_tensor(&lens, numbers, int32, SIZES(kBatch));
    for (int b = 0; b < kBatch; ++b) {
        const size_t last = (size_t)((b + 1) * kKvLen - 1) * kRow;
        memcpy(new_k + b * kRow, p.k + last, kRow * sizeof *new_k);
        memcpy(new_v + b * kRow, p.v + last, kRow * sizeof *new_v);
        memset(p.k + last, 0, kRow * sizeof *new_k);
        memset(p.v + last, 0, kRow * sizeof *new_v);
    }
    p.args.kv_lens = &lens.view;
    p.args.new_k = &tnew_k.view;
    p.args.new_v = &tnew_v.view;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(memcmp(p.k, k, sizeof k) == 0);
    CHECK(is_right(&p));
}

static void refusals(void) {
    paged a;
    make_paged(&a);
    a.p.args.window_left = 4;
    CHECK_REFUSED(jitney_attention(&a.p.args, NULL), JITNEY_INVALID_ARGUMENT, "has_window");
    make_paged(&a);
    a.p.args.block_table = &a.ttable.view; /* and no lengths */
    CHECK_REFUSED(jitney_attention(&a.p.args, NULL), JITNEY_INVALID_ARGUMENT, "kv_lens");
    make_paged(&a);
    a.p.args.block_table = &a.ttable.view;
    a.p.args.kv_lens = &a.tlens.view;
    a.tlens.view.dtype = int64;
    CHECK_REFUSED(jitney_attention(&a.p.args, NULL), JITNEY_INVALID_ARGUMENT, "kv_lens");
    make_problem(&a.p);
    a.p.args.softcap = -1;
    CHECK_REFUSED(jitney_attention(&a.p.args, NULL), JITNEY_INVALID_ARGUMENT, "softcap");
}

void serving_tests(void) {
    options();
    lengths();
    ragged();
    pages();
    new_keys();
    refusals();
}
