/* Attention over host tensors, and what of a DLTensor counts. */
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static void every_field_counts(void) {
    problem p;
    make_problem(&p);
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    CHECK(is_right(&p));

    make_problem(&p);
    p.args.causal = 1;
    p.args.scale = 0.75f;
    p.args.lse = &p.tlse.view;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));

    const DLDataType mask_types[] = {boolean, uint8};
    for (int i = 0; i < 2; ++i) {
        make_problem(&p);
        p.tmask.view.dtype = mask_types[i];
        p.args.mask = &p.tmask.view;
        p.args.lse = &p.tlse.view;
        CHECK_PASSED(jitney_attention(&p.args, NULL));
        CHECK(is_right(&p));
    }
}

/* [batch, heads, length, head_dim], behind an offset in bytes. */
static void strides_and_offset(void) {
    enum { kOffset = 3 };
    static float q[kOffset + kBatch * kQHeads * kQLen * kHeadDim];
    problem p;
    make_problem(&p);
    for (int b = 0; b < kBatch; ++b)
        for (int i = 0; i < kQLen; ++i)
            for (int h = 0; h < kQHeads; ++h)
                memcpy(q + kOffset + ((b * kQHeads + h) * kQLen + i) * kHeadDim,
                       p.q + ((b * kQLen + i) * kQHeads + h) * kHeadDim, kHeadDim * sizeof *q);
    p.tq.view.data = q;
    p.tq.view.byte_offset = kOffset * sizeof *q;
    set_strides(&p.tq, STRIDES(kQHeads * kQLen * kHeadDim, kHeadDim, kQLen * kHeadDim, 1));
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
}

/* With one key the output is V, to the bit. */
static void half_precision(void) {
    uint16_t q[8] = {0}, v[8], out[8];
    const DLDataType types[] = {bf16, fp16};
    const uint16_t patterns[2][8] = {
        {0x3f80, 0xbf80, 0x4000, 0x0000, 0x42c8, 0x3e80, 0xc2c8, 0x3f00},
        {0x3c00, 0xbc00, 0x4000, 0x0000, 0x5640, 0x3400, 0xd640, 0x3800},
    };
    for (int i = 0; i < 2; ++i) {
        tensor tq, tv, tout;
        memcpy(v, patterns[i], sizeof v);
        memset(out, 0xff, sizeof out);
        make_tensor(&tq, q, types[i], SIZES(1, 1, 1, 8));
        make_tensor(&tv, v, types[i], SIZES(1, 1, 1, 8));
        make_tensor(&tout, out, types[i], SIZES(1, 1, 1, 8));
        jitney_attention_args args = {.size = sizeof args};
        args.q = &tq.view;
        args.k = args.v = &tv.view;
        args.out = &tout.view;
        CHECK_PASSED(jitney_attention(&args, NULL));
        CHECK(memcmp(out, v, sizeof v) == 0);
    }
}

static void nothing_to_compute(void) {
    problem p;
    make_problem(&p);
    p.tq.shape[0] = p.tk.shape[0] = p.tv.shape[0] = p.tout.shape[0] = 0;
    p.tq.view.data = p.tk.view.data = p.tv.view.data = p.tout.view.data = NULL;
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK_TEXT(jitney_last_run(), "");
}

void attention_tests(void) {
    every_field_counts();
    strides_and_offset();
    half_precision();
    nothing_to_compute();
}
