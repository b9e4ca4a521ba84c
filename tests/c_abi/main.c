/* test_c_abi all | without-gpu */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/temporary.h"

int main(int count, char** arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: test_c_abi all | without-gpu\n");
        return 2;
    }
    char directory[4096];
    if (!make_directory(directory, sizeof directory)) {
        fprintf(stderr, "no temporary directory\n");
        return 2;
    }
    char cache[sizeof directory + 8];
    snprintf(cache, sizeof cache, "%s/cache", directory);
    setenv("JITNEY_CACHE_DIR", cache, 1); /* before the first call, which reads it */
    if (strcmp(arguments[1], "all") == 0) {
        error_tests();
        tensor_tests();
        attention_tests();
        rotary_tests();
        merge_states_tests();
        rows_tests();
        logits_tests();
        kernel_tests();
        append_kv_tests();
        fp8_quantize_tests();
        fp8_gemm_tests();
        fp8_linear_tests();
        explain_tests();
        operations_tests();
        scope_tests();
        serving_tests();
        plan_tests();
        gpu_tests();
        plan_gpu_tests();
        fp8_linear_gpu_tests();
        prewarm_tests(directory);
        model_tests();
        compile_tests(directory);
    } else {
        without_gpu_tests();
    }
    if (failures == 0) remove_directory(directory);
    fprintf(stderr, "%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
