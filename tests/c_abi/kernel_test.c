/* Kernels of the caller's own from C: made, compiled, launched, and refused where they are wrong.
 */
#include <stdint.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/fake_driver.h"
#include "tests/c_abi/suites.h"

static const jitney_named_text kConstants[] = {{"FACTOR", "2"}, {"TYPE", "float"}};
static const jitney_named_text kHeaders[] = {{"scaled.cuh", "// of a header\n"}};
static const char* const kOptions[] = {"--fmad=false"};

static jitney_kernel_code scale_code(void) {
    jitney_kernel_code code;
    memset(&code, 0, sizeof code);
    code.size = sizeof code;
    code.source = "#include \"scaled.cuh\"\n";
    code.function = "scale<TYPE>";
    code.file = "scale.cu";
    code.constants = kConstants;
    code.constant_count = 2;
    code.headers = kHeaders;
    code.header_count = 1;
    code.options = kOptions;
    code.option_count = 1;
    code.shared_bytes = 1024;
    return code;
}

static jitney_kernel_shape shape_of_one(void) {
    jitney_kernel_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.size = sizeof shape;
    shape.grid[0] = shape.grid[1] = shape.grid[2] = 1;
    shape.block[0] = 64;
    shape.block[1] = shape.block[2] = 1;
    shape.device = -1;
    return shape;
}

static void made(void) {
    jitney_kernel_code code = scale_code();
    const jitney_kernel* first = NULL;
    const jitney_kernel* second = NULL;
    CHECK_PASSED(jitney_kernel_of(&code, &first));
    CHECK_PASSED(jitney_kernel_of(&code, &second));
    CHECK(first != NULL && first == second);
    const char* text = NULL;
    CHECK_PASSED(jitney_kernel_spec(first, "sm_80", &text));
    CHECK(text != NULL && strncmp(text, "own:scale.cu:scale<TYPE>(FACTOR=2,TYPE=float):", 46) == 0);
    CHECK_PASSED(jitney_kernel_manifest(first, "sm_80", &text));
    CHECK(text != NULL && strncmp(text, "own {\"arch\":\"sm_80\",\"file\":\"scale.cu\"", 35) == 0);
    CHECK(strstr(text, "of a header") != NULL);
    code.arch_specific = 1;
    CHECK_PASSED(jitney_kernel_of(&code, &second));
    CHECK(second != first);
    CHECK_PASSED(jitney_kernel_spec(second, "sm_100a", &text));
    code.arch_specific = 0;
    code.file = NULL;
    code.constant_count = code.header_count = code.option_count = 0;
    code.constants = NULL;
    code.headers = NULL;
    code.options = NULL;
    CHECK_PASSED(jitney_kernel_of(&code, &second));
    CHECK_PASSED(jitney_kernel_spec(second, "sm_80", &text));
    CHECK(text != NULL && strncmp(text, "own:kernel.cu:scale<TYPE>:", 26) == 0);
}

static void launches(void) {
    const jitney_kernel_code code = scale_code();
    const jitney_kernel* kernel = NULL;
    CHECK_PASSED(jitney_kernel_of(&code, &kernel));
    CHECK_PASSED(jitney_kernel_prewarm(kernel, "sm_90a"));
    CHECK_PASSED(jitney_kernel_load(kernel, -1));
    jitney_kernel_shape shape = shape_of_one();
    shape.shared_bytes = 1024;
    const float factor = 2.0f;
    const void* values[] = {&factor};
    const size_t sizes[] = {sizeof factor};
    const int before = fake_launches();
    CHECK_PASSED(jitney_kernel_launch(kernel, &shape, values, sizes, 1, (jitney_stream)0x70));
    CHECK(fake_stream() == (void*)0x70);
    CHECK_PASSED(jitney_kernel_launch_packed(kernel, &shape, &factor, sizeof factor, NULL));
    CHECK_PASSED(jitney_kernel_launch(kernel, &shape, NULL, NULL, 0, NULL));
    CHECK(fake_launches() == before + 3);

    fake_capture(1);
    CHECK_PASSED(jitney_kernel_launch(kernel, &shape, values, sizes, 1, NULL));
    jitney_kernel_code other = code;
    other.source = "// not loaded\n";
    CHECK_PASSED(jitney_kernel_of(&other, &kernel));
    CHECK_REFUSED(jitney_kernel_launch(kernel, &shape, values, sizes, 1, NULL), JITNEY_CAPTURE,
                  "own:scale.cu");
    fake_capture(0);
}

static void refusals(void) {
    jitney_kernel_code code = scale_code();
    const jitney_kernel* kernel = NULL;
    CHECK_PASSED(jitney_kernel_of(&code, &kernel));
    const jitney_kernel* none = kernel;
    CHECK_REFUSED(jitney_kernel_of(&code, NULL), JITNEY_INVALID_ARGUMENT, "kernel is null");
    CHECK_REFUSED(jitney_kernel_of(NULL, &none), JITNEY_INVALID_ARGUMENT,
                  "args is null: point it to a jitney_kernel_code");
    CHECK(none == NULL);
    code.size = sizeof code - 8;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT,
                  "sizeof(jitney_kernel_code)");
    struct {
        jitney_kernel_code known;
        void* later;
    } newer = {scale_code(), NULL};
    newer.known.size = sizeof newer;
    CHECK_PASSED(jitney_kernel_of(&newer.known, &none));
    CHECK(none == kernel);
    newer.later = &newer;
    CHECK_REFUSED(jitney_kernel_of(&newer.known, &none), JITNEY_UNSUPPORTED, "newer libjitney");
    code = scale_code();
    code.reserved = 1;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT, "reserved is 1");
    code = scale_code();
    code.source = NULL;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT, "source is null");
    code = scale_code();
    code.function = NULL;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT, "function is null");
    code = scale_code();
    code.constants = NULL;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT,
                  "constants is null and counts 2");
    code = scale_code();
    code.option_count = SIZE_MAX;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT,
                  "options counts 18446744073709551615");
    const jitney_named_text nameless = {NULL, ""};
    code = scale_code();
    code.headers = &nameless;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT,
                  "a name of headers is null");
    const char* const option = "-I/usr/include";
    code = scale_code();
    code.options = &option;
    CHECK_REFUSED(jitney_kernel_of(&code, &none), JITNEY_INVALID_ARGUMENT, "reads a file");
    CHECK(none == NULL);

    jitney_kernel_shape shape = shape_of_one();
    const int before = fake_launches();
    CHECK_REFUSED(jitney_kernel_launch(NULL, &shape, NULL, NULL, 0, NULL), JITNEY_INVALID_ARGUMENT,
                  "jitney_kernel_of");
    CHECK_REFUSED(jitney_kernel_launch(kernel, NULL, NULL, NULL, 0, NULL), JITNEY_INVALID_ARGUMENT,
                  "args is null: point it to a jitney_kernel_shape");
    CHECK_REFUSED(jitney_kernel_launch(kernel, &shape, NULL, NULL, 1, NULL),
                  JITNEY_INVALID_ARGUMENT, "values is null");
    CHECK_REFUSED(jitney_kernel_launch_packed(kernel, &shape, NULL, 8, NULL),
                  JITNEY_INVALID_ARGUMENT, "parameters is null");
    const void* const nowhere[] = {NULL};
    const size_t four[] = {4};
    CHECK_REFUSED(jitney_kernel_launch(kernel, &shape, nowhere, four, 1, NULL),
                  JITNEY_INVALID_ARGUMENT, "parameter 1 of 1 is null");
    shape.shared_bytes = 1025;
    CHECK_REFUSED(jitney_kernel_launch(kernel, &shape, NULL, NULL, 0, NULL),
                  JITNEY_INVALID_ARGUMENT, "1025 bytes of dynamic shared memory");
    shape.size = 0;
    CHECK_REFUSED(jitney_kernel_launch(kernel, &shape, NULL, NULL, 0, NULL),
                  JITNEY_INVALID_ARGUMENT, "sizeof(jitney_kernel_shape)");
    CHECK(fake_launches() == before);
    const char* text = "";
    CHECK_REFUSED(jitney_kernel_spec(kernel, "sm_90", &text), JITNEY_INVALID_ARGUMENT, "sm_90a");
    CHECK(text == NULL);
    CHECK_REFUSED(jitney_kernel_spec(kernel, NULL, &text), JITNEY_INVALID_ARGUMENT, "arch is null");
    CHECK_REFUSED(jitney_kernel_manifest(kernel, "sm_80", NULL), JITNEY_INVALID_ARGUMENT,
                  "text is null");
    CHECK_REFUSED(jitney_kernel_prewarm(kernel, "sm_8"), JITNEY_INVALID_ARGUMENT, "sm_8");
    CHECK_REFUSED(jitney_kernel_load(kernel, 9), JITNEY_NO_DEVICE, "GPU 9");
}

void kernel_tests(void) {
    made();
    launches();
    refusals();
}
