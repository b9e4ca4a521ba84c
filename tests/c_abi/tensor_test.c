/* DLTensors that are none of Jitney's: each is refused by name, and nothing runs. */
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

/* What one test does to one tensor of a good problem. */
typedef void (*damage)(tensor* victim);

static void two_lanes(tensor* victim) {
    victim->view.dtype.lanes = 2;
}
static void no_lanes(tensor* victim) {
    victim->view.dtype.lanes = 0;
}
static void double_precision(tensor* victim) {
    victim->view.dtype.bits = 64;
}
static void complex_numbers(tensor* victim) {
    victim->view.dtype.code = kDLComplex;
}
static void unknown_code(tensor* victim) {
    victim->view.dtype.code = 200;
}
static void eight_bit_float(tensor* victim) {
    victim->view.dtype.code = JITNEY_DL_FLOAT8_E4M3FN;
    victim->view.dtype.bits = 8;
}
static void other_eight_bit_float(tensor* victim) {
    victim->view.dtype.code = JITNEY_DL_FLOAT8_E5M2;
    victim->view.dtype.bits = 8;
}
static void pinned(tensor* victim) {
    victim->view.device.device_type = kDLCUDAHost;
}
static void managed(tensor* victim) {
    victim->view.device.device_type = kDLCUDAManaged;
}
static void other_vendor(tensor* victim) {
    victim->view.device.device_type = kDLROCM;
}
static void no_such_device(tensor* victim) {
    const int type = 4711; /* none of the enumerators */
    memcpy(&victim->view.device.device_type, &type, sizeof type);
}
static void negative_gpu(tensor* victim) {
    victim->view.device.device_type = kDLCUDA;
    victim->view.device.device_id = -1;
}
static void elsewhere(tensor* victim) {
    victim->view.device.device_type = kDLCUDA;
}
static void before_itself(tensor* victim) {
    victim->view.byte_offset = (uint64_t)-4;
}
static void out_of_memory(tensor* victim) {
    victim->view.byte_offset = (uint64_t)1 << 60;
}
static void many_dimensions(tensor* victim) {
    victim->view.ndim = 6;
}
static void negative_dimensions(tensor* victim) {
    victim->view.ndim = -1;
}
static void no_dimensions(tensor* victim) {
    victim->view.ndim = 0;
}
static void no_shape(tensor* victim) {
    victim->view.shape = NULL;
}
static void negative_size(tensor* victim) {
    victim->shape[1] = -2;
}
static void huge(tensor* victim) {
    victim->shape[0] = victim->shape[1] = victim->shape[2] = INT64_MAX / 2;
}
static void no_data(tensor* victim) {
    victim->view.data = NULL;
    victim->view.byte_offset = 64;
}
static void misaligned(tensor* victim) {
    victim->view.byte_offset = 1;
}
static void spread(tensor* victim) {
    set_strides(victim, STRIDES(1000, 100, 10, 2));
}

static const struct {
    damage apply;
    const char* words;
} kDamages[] = {
    {two_lanes, "2 lanes"},
    {no_lanes, "0 lanes"},
    {double_precision, "64 bits"},
    {complex_numbers, "code 5"},
    {unknown_code, "code 200"},
    {eight_bit_float, "fp8_e4m3"},
    {other_eight_bit_float, "fp8_e5m2"},
    {pinned, "type 3"},
    {managed, "type 13"},
    {other_vendor, "type 10"},
    {no_such_device, "type 4711"},
    {negative_gpu, "GPU -1"},
    {elsewhere, "one device"},
    {many_dimensions, "6 dimensions"},
    {negative_dimensions, "-1 dimensions"},
    {no_dimensions, "0 dimensions"},
    {no_shape, "no shape"},
    {negative_size, "-2"},
    {huge, "64 bits"},
    {no_data, "no data"},
    {before_itself, "byte_offset of 18446744073709551612"},
    {out_of_memory, "byte_offset"},
    {misaligned, "multiple"},
    {spread, "innermost"},
};

static void check_damage(size_t which, size_t offset, const char* name) {
    problem p;
    make_problem(&p);
    p.args.lse = &p.tlse.view;
    kDamages[which].apply((tensor*)(void*)((char*)&p + offset));
    const float before = p.out[0];
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_INVALID_ARGUMENT, kDamages[which].words);
    CHECK(strstr(jitney_last_error(), name) != NULL);
    CHECK_TEXT(jitney_last_run(), "");
    CHECK(memcmp(&p.out[0], &before, sizeof before) == 0);
}

/* A batch of 0, its strides as numpy has them; row-major or not. */
static void empty(void) {
    problem p;
    make_problem(&p);
    p.args.lse = &p.tlse.view;
    tensor* const all[] = {&p.tq, &p.tk, &p.tv, &p.tout, &p.tlse};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
        all[i]->shape[0] = 0;
        set_strides(all[i], STRIDES(0, 0, 0, 0));
    }
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK_TEXT(jitney_last_run(), "");
    p.tq.view.strides = NULL; /* row-major: 0 times whatever is 0 */
    CHECK_PASSED(jitney_attention(&p.args, NULL));
}

void tensor_tests(void) {
    empty();
    for (size_t i = 0; i < sizeof kDamages / sizeof kDamages[0]; ++i) {
        check_damage(i, offsetof(problem, tq), "q ");
        check_damage(i, offsetof(problem, tv), "v ");
        check_damage(i, offsetof(problem, tout), "out ");
    }
}
