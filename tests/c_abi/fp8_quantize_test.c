/* Casting to the 8-bit formats, over host tensors. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/check_plan.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static const DLDataType e4m3 = {JITNEY_DL_FLOAT8_E4M3FN, 8, 1};
static const DLDataType e5m2 = {JITNEY_DL_FLOAT8_E5M2, 8, 1};

void fp8_quantize_tests(void) {
    float x[6] = {1.0f, -2.5f, 1000.0f, 0.0f, -0.0f, 0.25f};
    float multiplier = 2.0f, scale = 0.0f, amax = 0.0f;
    uint8_t out[6] = {0}, turned[6] = {0};
    tensor tx, tout, tturned, tmultiplier, tscale, tamax;
    make_tensor(&tx, x, fp32, SIZES(2, 3));
    make_tensor(&tout, out, e4m3, SIZES(2, 3));
    make_tensor(&tturned, turned, e4m3, SIZES(3, 2));
    make_tensor(&tmultiplier, &multiplier, fp32, SIZES(1));
    make_tensor(&tscale, &scale, fp32, SIZES(1));
    make_tensor(&tamax, &amax, fp32, SIZES(1));
    jitney_fp8_quantize_args args = {.size = sizeof args};
    args.x = &tx.view;
    args.out = &tout.view;
    args.out_transposed = &tturned.view;
    args.multiplier = &tmultiplier.view;
    args.scale = &tscale.view;
    args.amax = &tamax.view;
    CHECK_PASSED(jitney_fp8_quantize(&args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    const uint8_t codes[6] = {0x40, 0xca, 0x7e, 0x00, 0x80, 0x30}; /* 2, -5, 448, 0, -0, 0.5 */
    CHECK(memcmp(out, codes, 6) == 0);
    for (int i = 0; i < 6; ++i)
        CHECK(turned[i % 3 * 2 + i / 3] == codes[i]);
    CHECK(scale == 0.5f);
    CHECK(amax == 1000.0f);

    args.dynamic = 1;
    tout.view.dtype = tturned.view.dtype = e5m2;
    CHECK_RUNS_PLAN(fp8_quantize, &args);
    CHECK(multiplier == 57344.0f / 1000.0f);
    CHECK(scale == 1.0f / multiplier);
    CHECK(out[2] == 0x7b);

    x[1] = nanf("");
    CHECK_PASSED(jitney_fp8_quantize(&args, NULL));
    CHECK(isnan(amax) && multiplier == 1.0f && (out[1] & 0x7f) > 0x7c);

    size_t bytes = 1;
    CHECK_PASSED(jitney_fp8_quantize_workspace(&args, &bytes));
    CHECK(bytes == 0); /* of the host */
    CHECK_REFUSED(jitney_fp8_quantize_workspace(&args, NULL), JITNEY_INVALID_ARGUMENT, "bytes");

    tturned.view.dtype = e4m3;
    CHECK_REFUSED(jitney_fp8_quantize(&args, NULL), JITNEY_INVALID_ARGUMENT, "out_transposed");
    args.out_transposed = NULL;
    args.reserved = 1;
    CHECK_REFUSED(jitney_fp8_quantize(&args, NULL), JITNEY_INVALID_ARGUMENT, "reserved");
    args.reserved = 0;
    args.size = 8;
    CHECK_REFUSED(jitney_fp8_quantize(&args, NULL), JITNEY_INVALID_ARGUMENT, "args->size");
    args.size = sizeof args;
    args.x = NULL;
    CHECK_REFUSED(jitney_fp8_quantize(&args, NULL), JITNEY_INVALID_ARGUMENT, "x is null");

    const char* json = NULL;
    tx.view.data = tout.view.data = NULL;
    args.x = &tx.view;
    CHECK_PASSED(jitney_explain_fp8_quantize(&args, "sm_90a", &json));
    CHECK(json != NULL &&
          strstr(json, "\"chosen\":\"fp8_quantize<format=fp32,out=e5m2,codes=row>@sm_90a\"") !=
              NULL);
}
