/* Tensors on a GPU: which kernel is launched, on which stream; and what is said without one. */
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/fake_driver.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

static void make_gpu_problem(problem* made) {
    make_problem(made);
    tensor* const all[] = {&made->tq, &made->tk, &made->tv, &made->tout};
    for (size_t i = 0; i < 4; ++i) {
        all[i]->view.device.device_type = kDLCUDA;
        all[i]->view.dtype = bf16; /* half of each array */
    }
}

static int starts_with(const char* text, const char* start) {
    return strncmp(text, start, strlen(start)) == 0;
}

void gpu_tests(void) {
    problem p;
    static int place;
    const jitney_stream stream = (jitney_stream)(void*)&place; /* the fake does not look into it */
    make_gpu_problem(&p);

    fake_capture(1);
    CHECK_REFUSED(jitney_attn_prefill(&p.args, JITNEY_MMA, stream), JITNEY_CAPTURE,
                  "attn_prefill_mma<");
    fake_capture(0);

    const int before = fake_launches();
    CHECK_PASSED(jitney_attn_prefill(&p.args, JITNEY_MMA, stream));
    CHECK(fake_launches() == before + 1);
    CHECK(fake_stream() == (void*)stream);
    CHECK(starts_with(jitney_last_run(), "attn_prefill_mma<head_dim="));

    fake_capture(1); /* it is loaded now */
    CHECK_PASSED(jitney_attn_prefill(&p.args, JITNEY_MMA, NULL));
    CHECK(fake_stream() == NULL);
    fake_capture(0);

    CHECK_PASSED(jitney_attn_decode(&p.args, JITNEY_SCALAR, stream));
    CHECK(starts_with(jitney_last_run(), "attn_decode_scalar<head_dim="));
    CHECK_PASSED(jitney_push_kernel("attn_decode_mma"));
    CHECK_PASSED(jitney_attention(&p.args, stream));
    CHECK(starts_with(jitney_last_run(), "attn_decode_mma<head_dim="));
    CHECK_PASSED(jitney_pop());

    p.tq.view.device.device_id = p.tk.view.device.device_id = 1;
    CHECK_REFUSED(jitney_attention(&p.args, stream), JITNEY_INVALID_ARGUMENT, "GPU 1");
    p.tv.view.device.device_id = p.tout.view.device.device_id = 1;
    CHECK_REFUSED(jitney_attention(&p.args, stream), JITNEY_NO_DEVICE, "GPU");
}

void without_gpu_tests(void) {
    problem p;
    const char* json = NULL;
    make_gpu_problem(&p);
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_NO_DEVICE, "driver");
    CHECK_TEXT(jitney_last_run(), "");
    CHECK_REFUSED(jitney_explain_attention(&p.args, NULL, &json), JITNEY_NO_DEVICE, "GPU");
    CHECK_PASSED(jitney_explain_attention(&p.args, "sm_90a", &json));
}
