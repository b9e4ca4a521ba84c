/* Tensors for the tests: a DLTensor with room for its shape and strides. */
#ifndef TESTS_C_ABI_TENSORS_H
#define TESTS_C_ABI_TENSORS_H

#include <jitney/jitney.h>

typedef struct {
    DLTensor view;
    int64_t shape[8];
    int64_t strides[8];
} tensor;

/* Fills `made`, row-major with strides of NULL, in host memory. `sizes` ends with -1. */
void make_tensor(tensor* made, void* data, DLDataType type, const int64_t* sizes);
/* Gives it strides; there are as many as it has dimensions. */
void set_strides(tensor* made, const int64_t* strides);

#define SIZES(...) ((const int64_t[]){__VA_ARGS__, -1})
#define STRIDES(...) ((const int64_t[]){__VA_ARGS__})

extern const DLDataType fp32, fp16, bf16, int32, int64, boolean, uint8;

/* Values between -1 and 1, the same in every run. */
void fill(float* values, size_t count, unsigned seed);

/* An attention problem of fp32 in host memory that is well-formed: batch 2, q_len 3, kv_len 5, 4
   query heads, 2 KV heads, head_dim 8. */
enum { kBatch = 2, kQLen = 3, kKvLen = 5, kQHeads = 4, kKvHeads = 2, kHeadDim = 8 };
typedef struct {
    _Alignas(16) float q[kBatch * kQLen * kQHeads * kHeadDim];
    _Alignas(16) float k[kBatch * kKvLen * kKvHeads * kHeadDim];
    _Alignas(16) float v[kBatch * kKvLen * kKvHeads * kHeadDim];
    _Alignas(16) float out[kBatch * kQLen * kQHeads * kHeadDim];
    float lse[kBatch * kQHeads * kQLen];
    float slopes[kQHeads], sinks[kQHeads];
    uint8_t mask[kBatch * kQLen * kKvLen];
    tensor tq, tk, tv, tout, tlse, tmask;
    jitney_attention_args args; /* q, k, v and out */
} problem;

void make_problem(problem* made);
/* Whether out (and lse, where args has one) are what args asks for: scale, causal, mask, window,
   softcap, slopes and sinks, over q, k and v as the arrays of the problem have them. */
int is_right(const problem* solved);

#endif
