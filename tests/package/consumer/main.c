/* The same from C: a call on host tensors, and one that is refused with a sentence. */
#include <jitney/jitney.h>
#include <string.h>

int main(void) {
    float values[6] = {1, 2, 3, 4, 5, 6};
    float out[6] = {0};
    int64_t shape[4] = {1, 3, 1, 2};
    DLTensor kept = {.data = values,
                     .device = {kDLCPU, 0},
                     .ndim = 4,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = shape};
    DLTensor written = kept;
    written.data = out;
    jitney_attention_args args = {.size = sizeof args, .causal = 1};
    args.q = args.k = args.v = &kept;
    args.out = &written;
    if (jitney_attention(&args, NULL) != JITNEY_SUCCESS) return 1;
    if (out[0] != 1 || out[1] != 2 || strcmp(jitney_last_run(), "reference") != 0) return 2;
    args.scale = -1.0f;
    if (jitney_attention(&args, NULL) != JITNEY_INVALID_ARGUMENT) return 3;
    return strstr(jitney_last_error(), "scale") != NULL ? 0 : 4;
}
