/* Backends and kernels that a thread asks for. */
#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

void scope_tests(void) {
    problem p;
    make_problem(&p);
    CHECK_REFUSED(jitney_pop(), JITNEY_INVALID_ARGUMENT, "nothing to pop");
    CHECK_REFUSED(jitney_push_kernel("attn_imaginary"), JITNEY_INVALID_ARGUMENT, "attn_imaginary");
    CHECK_REFUSED(jitney_push_kernel("attn\n\x1b[2J"), JITNEY_INVALID_ARGUMENT,
                  "attn\\n\\x1b[2J"); /* shown, not obeyed */
    CHECK_REFUSED(jitney_pop(), JITNEY_INVALID_ARGUMENT,
                  "nothing to pop"); /* that one counts not */

    CHECK_PASSED(jitney_push_backend(JITNEY_JIT));
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_UNSUPPORTED, "host");
    CHECK_PASSED(jitney_push_backend(JITNEY_REFERENCE));
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK(is_right(&p));
    CHECK_PASSED(jitney_push_kernel("attn_prefill_mma"));
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_UNSUPPORTED,
                  "asks for a kernel on the GPU");
    CHECK_PASSED(jitney_pop());
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK_PASSED(jitney_pop());
    CHECK_REFUSED(jitney_attention(&p.args, NULL), JITNEY_UNSUPPORTED, "host");
    CHECK_PASSED(jitney_pop());
    CHECK_PASSED(jitney_attention(&p.args, NULL));
    CHECK_REFUSED(jitney_pop(), JITNEY_INVALID_ARGUMENT, "nothing to pop");
}
