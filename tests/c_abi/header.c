/* The header compiles with nothing before it, and uses no keyword of C++. */
#include <jitney/jitney.h>

const char* jitney_header_in_c(void);
const char* jitney_header_in_c(void) {
    jitney_attention_args args = {.size = sizeof args};
    return jitney_attention(&args, NULL) == JITNEY_SUCCESS ? "" : jitney_last_error();
}
