/* The linear layer on FP8: over host tensors, and what reaches a GPU's driver. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/check_plan.h"
#include "tests/c_abi/fake_driver.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

enum { kRows = 4, kIn = 8, kOut = 3, kHistory = 2, kColumns = 6 };

void fp8_linear_tests(void) {
    static const DLDataType e4m3 = {JITNEY_DL_FLOAT8_E4M3FN, 8, 1};
    float x[kRows * kIn], weight[kOut * kIn], bias[kOut], y[kRows * kOut], state[3 * kColumns];
    float before[3 * kColumns];
    float scales[2], grad_y[kRows * kOut], grad_weight[kOut * kIn], grad_bias[kOut];
    uint8_t x_codes[kRows * kIn], weight_codes[kOut * kIn];
    tensor tx, tweight, tbias, ty, tstate, tscales, tgrad_y, tgrad_weight, tgrad_bias;
    tensor tx_codes, tweight_codes;
    fill(x, kRows * kIn, 1);
    fill(weight, kOut * kIn, 2);
    fill(bias, kOut, 3);
    fill(grad_y, kRows * kOut, 4);
    make_tensor(&tx, x, fp32, SIZES(kRows, kIn));
    make_tensor(&tweight, weight, fp32, SIZES(kOut, kIn));
    make_tensor(&tbias, bias, fp32, SIZES(kOut));
    make_tensor(&ty, y, fp32, SIZES(kRows, kOut));
    make_tensor(&tstate, state, fp32, SIZES(3, kColumns));
    make_tensor(&tscales, scales, fp32, SIZES(2));
    make_tensor(&tgrad_y, grad_y, fp32, SIZES(kRows, kOut));
    make_tensor(&tgrad_weight, grad_weight, fp32, SIZES(kOut, kIn));
    make_tensor(&tgrad_bias, grad_bias, fp32, SIZES(kOut));
    make_tensor(&tx_codes, x_codes, e4m3, SIZES(kRows, kIn));
    make_tensor(&tweight_codes, weight_codes, e4m3, SIZES(kOut, kIn));

    jitney_fp8_linear_args args = {.size = sizeof args};
    args.x = &tx.view;
    args.weight = &tweight.view;
    args.bias = &tbias.view;
    args.y = &ty.view;
    args.state = &tstate.view;
    args.x_codes = &tx_codes.view;
    args.weight_codes = &tweight_codes.view;
    args.scales = &tscales.view;
    args.recipe.formats = JITNEY_FP8_HYBRID;
    args.recipe.history = kHistory;
    int32_t columns = 0;
    CHECK_PASSED(jitney_fp8_state_columns(&args.recipe, &columns));
    CHECK(columns == kColumns);
    CHECK_PASSED(jitney_fp8_state_reset(&tstate.view, NULL));
    for (int i = 0; i < 3 * kColumns; ++i)
        CHECK(state[i] == 0.0f);
    CHECK_PASSED(jitney_fp8_linear(&args, NULL));
    CHECK_RUNS_PLAN(fp8_linear, &args); /* with the multipliers of the first */
    CHECK(state[0] > 1.0f);
    for (int r = 0; r < kRows; ++r) {
        for (int o = 0; o < kOut; ++o) {
            float sum = bias[o];
            for (int i = 0; i < kIn; ++i)
                sum += x[r * kIn + i] * weight[o * kIn + i];
            CHECK(fabsf(y[r * kOut + o] - sum) < 0.2f);
        }
    }

    jitney_fp8_linear_backward_args backward = {.size = sizeof backward};
    backward.grad_y = &tgrad_y.view;
    backward.x_codes = &tx_codes.view;
    backward.weight_codes = &tweight_codes.view;
    backward.scales = &tscales.view;
    backward.grad_weight = &tgrad_weight.view;
    backward.grad_bias = &tgrad_bias.view;
    backward.state = &tstate.view;
    backward.recipe = args.recipe;
    size_t bytes = 1;
    CHECK_PASSED(jitney_fp8_linear_backward_workspace(&backward, &bytes));
    CHECK(bytes == 0); /* of the host */
    CHECK_RUNS_PLAN(fp8_linear_backward, &backward);
    for (int o = 0; o < kOut; ++o) {
        float sum = 0.0f;
        for (int r = 0; r < kRows; ++r)
            sum += grad_y[r * kOut + o];
        CHECK(fabsf(grad_bias[o] - sum) < 1e-5f);
    }
    CHECK(state[2 * kColumns + 2] > 0.0f);

    /* What they would launch on a GPU. */
    const char* json = NULL;
    CHECK_PASSED(jitney_explain_fp8_linear(&args, "sm_89", &json));
    CHECK(json != NULL && strstr(json, "{\"arch\":\"sm_89\",\"launches\":[{\"spec\":\"") == json);
    CHECK(json != NULL &&
          strstr(json, "fp8_update<threads=256>@sm_89\",\"grid\":[1,1,1],") != NULL);
    CHECK(json != NULL && strstr(json, "],\"workspace_bytes\":65536,\"candidates\":[{") != NULL);
    CHECK_PASSED(jitney_explain_fp8_linear_backward(&backward, "sm_89", &json));
    CHECK(json != NULL && strstr(json, "column_sums<") != NULL);
    CHECK_REFUSED(jitney_explain_fp8_linear(&args, NULL, &json), JITNEY_NO_DEVICE, "arch");
    CHECK(json == NULL);
    CHECK_REFUSED(jitney_explain_fp8_linear(NULL, "sm_89", &json), JITNEY_INVALID_ARGUMENT, "args");

    args.scales = NULL;
    CHECK_REFUSED(jitney_fp8_linear(&args, NULL), JITNEY_INVALID_ARGUMENT, "scales is null");
    args.scales = &tscales.view;
    args.recipe.margin = -3;
    CHECK_REFUSED(jitney_fp8_linear(&args, NULL), JITNEY_INVALID_ARGUMENT, "margin is -3");
    args.recipe.margin = 19;
    CHECK_REFUSED(jitney_fp8_linear(&args, NULL), JITNEY_INVALID_ARGUMENT, "0 to 18");
    args.recipe.margin = 0;
    args.recipe.formats = 7;
    CHECK_REFUSED(jitney_fp8_linear(&args, NULL), JITNEY_INVALID_ARGUMENT, "formats is 7");
    CHECK_REFUSED(jitney_fp8_state_columns(NULL, &columns), JITNEY_INVALID_ARGUMENT, "recipe");
    backward.grad_weight = backward.grad_bias = NULL;
    CHECK_REFUSED(jitney_fp8_linear_backward(&backward, NULL), JITNEY_INVALID_ARGUMENT, "grad_x");

    /* Where a call is refused, none of its casts has run. */
    args.recipe.formats = JITNEY_FP8_HYBRID;
    tweight_codes.view.data = weight;
    memcpy(before, state, sizeof state);
    CHECK_REFUSED(jitney_fp8_linear(&args, NULL), JITNEY_INVALID_ARGUMENT, "begins where");
    CHECK(memcmp(before, state, sizeof state) == 0);
}

/* The fake driver computes nothing; its memory is the host's. */
void fp8_linear_gpu_tests(void) {
    static _Alignas(16) char x[kRows * kIn * 2], weight[kOut * kIn * 2], y[kRows * kOut * 2];
    static float state[3 * kColumns];
    float before[3 * kColumns];
    tensor tx, tweight, ty, tstate;
    make_tensor(&tx, x, bf16, SIZES(kRows, kIn));
    make_tensor(&tweight, weight, bf16, SIZES(kOut, kIn));
    make_tensor(&ty, y, bf16, SIZES(kRows, kOut));
    make_tensor(&tstate, state, fp32, SIZES(3, kColumns));
    tensor* const all[] = {&tx, &tweight, &ty, &tstate};
    for (size_t i = 0; i < 4; ++i)
        all[i]->view.device.device_type = kDLCUDA;
    jitney_fp8_linear_args args = {.size = sizeof args};
    args.x = &tx.view;
    args.weight = &tweight.view;
    args.y = &ty.view;
    args.state = &tstate.view;
    args.recipe.formats = JITNEY_FP8_E5M2;
    args.recipe.history = kHistory;
    state[0] = state[3 * kColumns - 1] = 7.0f;
    CHECK_PASSED(jitney_fp8_state_reset(&tstate.view, NULL));
    CHECK(state[0] == 0.0f && state[3 * kColumns - 1] == 0.0f);

    /* The cast is loaded, and what comes after it is not. */
    tensor tcodes, tamax;
    static unsigned char codes[kRows * kIn];
    float amax = 0.0f;
    make_tensor(&tcodes, codes, (DLDataType){JITNEY_DL_FLOAT8_E5M2, 8, 1}, SIZES(kRows, kIn));
    make_tensor(&tamax, &amax, fp32, SIZES(1));
    tcodes.view.device.device_type = tamax.view.device.device_type = kDLCUDA;
    jitney_fp8_quantize_args cast = {.size = sizeof cast};
    cast.x = &tx.view;
    cast.out = &tcodes.view;
    cast.amax = &tamax.view;
    CHECK_PASSED(jitney_fp8_quantize(&cast, NULL));

    const int launches = fake_launches();
    const int allocations = fake_allocations();
    memcpy(before, state, sizeof state);
    fake_capture(1);
    CHECK_REFUSED(jitney_fp8_linear(&args, NULL), JITNEY_CAPTURE, "fp8_gemm_");
    CHECK(fake_launches() == launches);
    CHECK(fake_allocations() == allocations);
    CHECK(memcmp(before, state, sizeof state) == 0);
    CHECK_TEXT(jitney_last_run(), "");
    fake_capture(0);
    CHECK_PASSED(jitney_fp8_linear(&args, NULL));
    CHECK(fake_launches() == launches + 4);
    fake_capture(1);
    CHECK_PASSED(jitney_fp8_linear(&args, NULL));
    CHECK(fake_launches() == launches + 8);
    fake_capture(0);

    /* A cast in memory of the caller's allocates nothing in a graph. */
    static _Alignas(256) char memory[65536];
    size_t bytes = 0;
    CHECK_PASSED(jitney_fp8_quantize_workspace(&cast, &bytes));
    CHECK(bytes == sizeof memory);
    CHECK_PASSED(jitney_init_workspace(memory, bytes, 0, NULL));
    cast.workspace = memory;
    cast.workspace_bytes = bytes;
    const int cast_allocations = fake_allocations();
    fake_capture(1);
    CHECK_PASSED(jitney_fp8_quantize(&cast, NULL));
    fake_capture(0);
    CHECK(fake_allocations() == cast_allocations);
    cast.workspace_bytes = 100;
    CHECK_REFUSED(jitney_fp8_quantize(&cast, NULL), JITNEY_INVALID_ARGUMENT, "100 bytes");
}
