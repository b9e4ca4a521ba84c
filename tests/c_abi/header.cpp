// The header compiles as C++11 with nothing before it, and twice is as once.
#include <jitney/jitney.h>
// Between the two, so that the second is not merged with the first.
#include <type_traits>
// NOLINTNEXTLINE: again on purpose.
#include <jitney/jitney.h>

static_assert(std::is_standard_layout<jitney_attention_args>::value, "a C struct");
static_assert(std::is_standard_layout<jitney_rotary_args>::value, "a C struct");
static_assert(std::is_trivial<jitney_prewarm_entry>::value, "a C struct");

const char* jitney_header_in_cpp();
const char* jitney_header_in_cpp() {
    jitney_attention_args args = jitney_attention_args();
    args.size = sizeof args;
    return jitney_attention(&args, nullptr) == JITNEY_SUCCESS ? "" : jitney_last_error();
}
