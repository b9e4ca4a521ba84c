/* What main() runs. */
#ifndef TESTS_C_ABI_SUITES_H
#define TESTS_C_ABI_SUITES_H

void append_kv_tests(void);
void attention_tests(void);
void error_tests(void);
void explain_tests(void);
void plan_tests(void);
void plan_gpu_tests(void);
void fp8_gemm_tests(void);
void fp8_linear_tests(void);
void fp8_linear_gpu_tests(void);
void fp8_quantize_tests(void);
void gpu_tests(void);
void without_gpu_tests(void);
/* Those of the compiler take a directory that is theirs. */
void prewarm_tests(const char* directory);
void model_tests(void);
void compile_tests(const char* directory);
void operations_tests(void);
void rotary_tests(void);
void kernel_tests(void);
void rows_tests(void);
void logits_tests(void);
void merge_states_tests(void);
void scope_tests(void);
void serving_tests(void);
void tensor_tests(void);

#endif
