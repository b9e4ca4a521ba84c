/* Products of FP8 matrices, over host tensors. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/check_plan.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static const DLDataType e4m3 = {JITNEY_DL_FLOAT8_E4M3FN, 8, 1};
static const DLDataType e5m2 = {JITNEY_DL_FLOAT8_E5M2, 8, 1};

void fp8_gemm_tests(void) {
    /* [[1, 2, -0.5], [0, 4, 1]] and, transposed, [[1, 1, 2], [0.5, -1, 4]] */
    uint8_t a[6] = {0x38, 0x40, 0xb0, 0x00, 0x48, 0x38};
    uint8_t b[6] = {0x3c, 0x3c, 0x40, 0x38, 0xbc, 0x44};
    float scale = 0.5f, bias[2] = {10.0f, -10.0f}, multiplier = 2.0f, amax = 0.0f;
    float out[4] = {0};
    uint8_t codes[4] = {0};
    tensor ta, tb, tout, tscale, tbias, tmultiplier, tamax, tcodes;
    make_tensor(&ta, a, e4m3, SIZES(2, 3));
    make_tensor(&tb, b, e5m2, SIZES(2, 3));
    make_tensor(&tout, out, fp32, SIZES(2, 2));
    make_tensor(&tscale, &scale, fp32, SIZES(1));
    make_tensor(&tbias, bias, fp32, SIZES(2));
    make_tensor(&tmultiplier, &multiplier, fp32, SIZES(1));
    make_tensor(&tamax, &amax, fp32, SIZES(1));
    make_tensor(&tcodes, codes, e4m3, SIZES(2, 2));
    jitney_fp8_gemm_args args = {.size = sizeof args};
    args.a = &ta.view;
    args.b = &tb.view;
    args.out = &tout.view;
    args.dequant_scale = &tscale.view;
    args.trans_b = 1;
    CHECK_PASSED(jitney_fp8_gemm(&args, NULL));
    CHECK_TEXT(jitney_last_run(), "reference");
    CHECK(out[0] == 1.0f && out[1] == -1.75f && out[2] == 3.0f && out[3] == 0.0f);

    args.bias = &tbias.view;
    CHECK_RUNS_PLAN(fp8_gemm, &args);
    CHECK(out[0] == 11.0f && out[1] == -11.75f && out[2] == 13.0f && out[3] == -10.0f);

    args.out = &tcodes.view;
    args.out_multiplier = &tmultiplier.view;
    args.amax = &tamax.view;
    CHECK_PASSED(jitney_fp8_gemm(&args, NULL));
    CHECK(amax == 13.0f);
    CHECK(codes[0] == 0x5b && codes[2] == 0x5d && codes[3] == 0xda); /* 22, 26, -20 */

    ta.view.dtype = uint8; /* as frameworks without FP8 types keep codes */
    CHECK_REFUSED(jitney_fp8_gemm(&args, NULL), JITNEY_INVALID_ARGUMENT, "unsigned 8 bits");
    ta.view.dtype = e4m3;

    /* Nothing to multiply: its amax is 0. */
    ta.shape[0] = tcodes.shape[0] = 0;
    CHECK_PASSED(jitney_fp8_gemm(&args, NULL));
    CHECK(amax == 0.0f);
    ta.shape[0] = tcodes.shape[0] = 2;

    args.out_multiplier = NULL;
    CHECK_REFUSED(jitney_fp8_gemm(&args, NULL), JITNEY_INVALID_ARGUMENT, "out_multiplier");
    args.out = &tout.view;
    args.amax = NULL;
    args.trans_a = 1;
    CHECK_REFUSED(jitney_fp8_gemm(&args, NULL), JITNEY_INVALID_ARGUMENT, "trans_a");
    args.trans_a = 0;
    args.reserved = 1;
    CHECK_REFUSED(jitney_fp8_gemm(&args, NULL), JITNEY_INVALID_ARGUMENT, "reserved");
    args.reserved = 0;
    args.size = 8;
    CHECK_REFUSED(jitney_fp8_gemm(&args, NULL), JITNEY_INVALID_ARGUMENT, "args->size");
    args.size = sizeof args;
    args.dequant_scale = NULL;
    CHECK_REFUSED(jitney_fp8_gemm(&args, NULL), JITNEY_INVALID_ARGUMENT, "give dequant_scale");
    args.dequant_scale = &tscale.view;

    size_t bytes = 1;
    CHECK_PASSED(jitney_fp8_gemm_workspace(&args, &bytes));
    CHECK(bytes == 0); /* of the host */
    CHECK_REFUSED(jitney_fp8_gemm_workspace(&args, NULL), JITNEY_INVALID_ARGUMENT, "bytes");

    const char* json = NULL;
    ta.view.data = tb.view.data = tout.view.data = NULL;
    CHECK_PASSED(jitney_explain_fp8_gemm(&args, "sm_89", &json));
    CHECK(json != NULL &&
          strstr(json, "\"chosen\":\"fp8_gemm_mma<a=e4m3,b=e5m2,out=fp32,") != NULL);
    CHECK_PASSED(jitney_explain_fp8_gemm(&args, "sm_80", &json));
    CHECK(json != NULL && strstr(json, "FP8 tensor cores need sm_89 or newer") != NULL);
}
