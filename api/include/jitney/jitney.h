/* Jitney from C, and from whatever can call C. Plain C11; the calls mean what those of the C++
   headers mean, and docs/c_abi.md says what is particular to C.

   Tensors are DLPack's DLTensor, in host memory (kDLCPU) or on a GPU (kDLCUDA): bf16, fp16, fp32,
   e4m3fn, e5m2, int32, int64, bool, with one lane; strides in elements, or NULL where the tensor is
   row-major without gaps. They are read during the call alone. Where an earlier include brought a
   copy of DLPack's header, that one counts.

   Every call that returns a jitney_status is 0 where it succeeded; otherwise jitney_last_error()
   has one sentence that says what was wrong and what to do. Strings that are returned belong to the
   library. They are the thread's own, and stay valid until the same function, or for the errors any
   function, is called on that thread again. */
#ifndef JITNEY_JITNEY_H
#define JITNEY_JITNEY_H

#include <stddef.h>
#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
#include <dlpack/dlpack.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Values never change; later versions append. */
typedef enum jitney_status {
    JITNEY_SUCCESS = 0,
    JITNEY_INVALID_ARGUMENT = 1, /* a shape, stride, dtype, pointer or text that can't be meant */
    JITNEY_UNSUPPORTED = 2,      /* well-formed, but no kernel (or not the forced one) can do it */
    JITNEY_NO_DEVICE = 3,        /* no driver, no GPU, or not the GPU the tensors live on */
    JITNEY_NO_COMPILER = 4,      /* something has to be compiled, and NVRTC can't be opened */
    JITNEY_COMPILE_FAILED = 5,   /* NVRTC refused: jitney_last_compile_log() */
    JITNEY_NOT_CACHED = 6,       /* JITNEY_JIT=off, and the specialization is in no cache layer */
    JITNEY_DRIVER = 7,           /* the CUDA driver returned an error */
    JITNEY_CAPTURE = 8,          /* a load or a compile would be needed during a graph capture */
    JITNEY_OUT_OF_MEMORY = 9,    /* no device memory for a workspace, or no host memory */
    JITNEY_IO = 10,              /* a file could not be read or written */
    JITNEY_INTERNAL = 11         /* a broken invariant of this library: please report it */
} jitney_status;

/* Codes of DLDataType that DLPack's header has from version 1.1 on. A bool is a byte of 0 or 1,
   with the code of bool or as kDLUInt of 8 bits. */
enum { JITNEY_DL_BOOL = 6, JITNEY_DL_FLOAT8_E4M3FN = 10, JITNEY_DL_FLOAT8_E5M2 = 12 };

/* The driver's stream: a CUstream, or a cudaStream_t; NULL is the default stream. */
typedef struct CUstream_st* jitney_stream;

/* "0.1.0" */
const char* jitney_version(void);

/* What was wrong with this thread's last call that returns a status; "" where it succeeded. */
const char* jitney_last_error(void);
/* The compiler's log of that call where it returned JITNEY_COMPILE_FAILED; "" otherwise. */
const char* jitney_last_compile_log(void);
/* What this thread's last operation ran: a specialization's text, "reference" for the reference
   backend, or "" where nothing had to be computed or the call failed. */
const char* jitney_last_run(void);

/* A logits function: CUDA C++ that attention's kernels apply to each score. jitney/logits.hpp says
   what the text may be; `parameters` are `count` declarations such as "const float* slopes", at
   most 4. *function is NULL where the call fails; it stays valid as long as the process lives, and
   equal texts give the same one. */
typedef struct jitney_logits_function jitney_logits_function;
jitney_status jitney_logits_function_of(const char* text, const char* const* parameters,
                                        size_t count, const jitney_logits_function** function);
/* The value of a parameter, in the member for its declared type. */
typedef union jitney_logits_value {
    const void* pointer; /* a pointer, to the GPU's memory */
    float fp32;          /* float */
    int32_t int32;       /* int */
    int64_t int64;       /* long long */
} jitney_logits_value;

/* Attention. The fields are those of jitney::AttentionArgs, and jitney/attention.hpp says more of
   each; one that is NULL or 0 is left out. A later version appends fields: `size` says which of
   them the caller knows. Index tensors are int32. */
typedef struct jitney_attention_args {
    size_t size;         /* sizeof(jitney_attention_args) */
    const DLTensor* q;   /* [batch, q_len, q_heads, head_dim], ragged: [total_q, q_heads, head_dim];
                            bf16, fp16 or fp32 */
    const DLTensor* k;   /* [batch, kv_len, kv_heads, head_dim], where kv_heads divides q_heads;
                            ragged: [total_kv, kv_heads, head_dim]; paged: the pools, see below */
    const DLTensor* v;   /* as k */
    const DLTensor* out; /* as q */
    /* bool, true = keep: [batch, kv_len], [batch, q_len, kv_len] or
       [batch, q_heads, q_len, kv_len]; a batch, q_heads or q_len of 1 counts for all. A key that no
       query of its request sees may hold anything, NaN too; V of one that some see is finite. */
    const DLTensor* mask;
    const DLTensor* lse; /* fp32 [batch, q_heads, q_len], ragged: [total_q, q_heads]; receives the
                            natural-log LSE */
    float scale;         /* positive; 0: 1 / sqrt(head_dim) */
    int32_t causal;      /* query i sees the keys j <= i + (kv_len - q_len) */

    /* Ragged queries: request b has the rows qo_indptr[b] to qo_indptr[b + 1] of q. The second is a
       copy of its batch + 1 numbers in host memory, read during the call. */
    const DLTensor* qo_indptr;
    const int32_t* qo_indptr_host;

    /* How many keys each request has: [batch], or [batch + 1]. */
    const DLTensor* kv_lens;
    const DLTensor* kv_indptr;

    /* Pages: k and v are pools [pages, page_size, kv_heads, head_dim], or [slots, kv_heads,
       head_dim]; one of a token table, a block table and a page list says where requests are. */
    const DLTensor* req_to_token;     /* [requests, max_len] */
    const DLTensor* req_pool_indices; /* [batch] */
    const DLTensor* block_table;      /* [batch, max_pages] */
    const DLTensor* kv_page_indptr;   /* [batch + 1] */
    const DLTensor* kv_page_indices;  /* [any] */
    const DLTensor* last_page_len;    /* [batch] */
    int64_t max_kv_len;               /* about the longest request, where tables are far wider */

    /* Where has_window is not 0: a query at the place p of its request sees the keys
       p - window_left to p + window_right; -1: no bound. */
    int32_t has_window;
    int32_t window_left;
    int32_t window_right;
    float softcap;                /* scores become softcap * tanh(score / softcap) */
    const DLTensor* alibi_slopes; /* fp32 [q_heads]: slope * |p - key| is subtracted */
    const DLTensor* sinks;        /* fp32 [q_heads]: a logit that joins the denominator */

    /* [batch, new_len, kv_heads, head_dim]: the last keys and values of each request, which its
       length counts already; attended to, and written to their place in k and v. */
    const DLTensor* new_k;
    const DLTensor* new_v;

    /* Not 0: the result of a request is the same, bit for bit, whoever shares the batch; max_kv_len
       is then no less than the longest length. */
    int32_t batch_invariant;
    int32_t reserved; /* 0 */

    /* The caller's memory for what kernels need beside the tensors: see jitney_init_workspace. NULL
       and 0: the library's own. */
    void* workspace;
    size_t workspace_bytes;

    const jitney_logits_function* logits; /* edits the scores; on a GPU alone */
    jitney_logits_value logits_values[4]; /* one for each parameter; the others are 0 */
} jitney_attention_args;

/* Runs attention: picks decode or prefill, the variant and the backend. Asynchronous on `stream`
   for GPU tensors; can be captured in a graph once a call has loaded its kernel. */
jitney_status jitney_attention(const jitney_attention_args* args, jitney_stream stream);

typedef enum jitney_variant {
    JITNEY_SCALAR = 0,
    JITNEY_MMA = 1,
    JITNEY_WGMMA = 2 /* jitney_attn_prefill alone, exactly sm_90a */
} jitney_variant;

/* Run this very kernel: they fail, with the reason, where it can't run the problem. `variant` is a
   jitney_variant. */
jitney_status jitney_attn_prefill(const jitney_attention_args* args, int variant,
                                  jitney_stream stream);
jitney_status jitney_attn_decode(const jitney_attention_args* args, int variant,
                                 jitney_stream stream);

/* A workspace of the caller's: memory on the tensors' GPU, aligned to 256 bytes and at least as
   large as the call (or its plan) needs. It is prepared once, and then serves calls of every kind
   that come one after the other; launches that may run at the same time need memory of their own. A
   graph that was captured with it allocates nothing. */

/* *bytes is what a call with such arguments needs, 0 where that is nothing. Data may be NULL. */
jitney_status jitney_attention_workspace(const jitney_attention_args* args, size_t* bytes);
/* Clears what calls expect to be clear, and leave so: once, before they use the memory, and again
   where something else wrote to it. Asynchronous on `stream`. */
jitney_status jitney_init_workspace(void* workspace, size_t bytes, int32_t device,
                                    jitney_stream stream);

/* A plan: a call that was checked, chosen and loaded once, and runs many times with other data.
   Every operation has them: jitney_NAME_plan_create makes one, jitney_NAME_plan_run runs it.
   jitney/plan.hpp says more. */
typedef struct jitney_plan jitney_plan;
typedef jitney_plan jitney_attention_plan;

/* *bytes is what a workspace of the caller's has to have; 0 where the calls need none. */
jitney_status jitney_plan_workspace(const jitney_plan* plan, size_t* bytes);
/* What it runs, as jitney_explain_NAME of the operation tells it. */
jitney_status jitney_plan_explain(const jitney_plan* plan, const char** json);
/* Not while it runs; what it has launched goes on. NULL is let be. */
jitney_status jitney_plan_destroy(jitney_plan* plan);

/* Of such a call; its shapes are the most that the plan will hold, and its data may be NULL. *plan
   is NULL where the call fails. */
jitney_status jitney_attention_plan_create(const jitney_attention_args* args,
                                           jitney_attention_plan** plan);
/* The call with other data: all but the addresses, max_kv_len and the number of kv_page_indices is
   as it was. From any thread, also several at a time; can be captured at once. */
jitney_status jitney_attention_plan_run(const jitney_attention_plan* plan,
                                        const jitney_attention_args* args, jitney_stream stream);
/* jitney_plan_workspace, jitney_plan_explain and jitney_plan_destroy under other names. */
jitney_status jitney_attention_plan_workspace(const jitney_attention_plan* plan, size_t* bytes);
jitney_status jitney_attention_plan_explain(const jitney_attention_plan* plan, const char** json);
jitney_status jitney_attention_plan_destroy(jitney_attention_plan* plan);

typedef enum jitney_rotary_style {
    JITNEY_INTERLEAVED = 0, /* pair i is the elements 2i and 2i + 1 */
    JITNEY_HALF_SPLIT = 1   /* i and i + rotary_dim / 2 */
} jitney_rotary_style;

/* Rotary position embedding: a pair (a, b) becomes (a cos - b sin, a sin + b cos). The fields are
   those of jitney::RotaryArgs; k and k_out (together) and positions may be NULL. */
typedef struct jitney_rotary_args {
    size_t size;           /* sizeof(jitney_rotary_args) */
    const DLTensor* q;     /* [batch, length, heads, head_dim]: bf16, fp16 or fp32 */
    const DLTensor* k;     /* [batch, length, kv_heads, head_dim] */
    const DLTensor* q_out; /* q's shape; q itself (in place), or memory apart from it */
    const DLTensor* k_out;
    const DLTensor* cos;       /* fp32 [positions, rotary_dim / 2] */
    const DLTensor* sin;       /* the same shape and strides */
    const DLTensor* positions; /* int32 or int64, [batch, length] or [length] */
    int32_t style;             /* a jitney_rotary_style */
    int32_t reserved;          /* 0 */
} jitney_rotary_args;

jitney_status jitney_rotary_emb(const jitney_rotary_args* args, jitney_stream stream);
jitney_status jitney_rotary_workspace(const jitney_rotary_args* args, size_t* bytes);
jitney_status jitney_rotary_plan_create(const jitney_rotary_args* args, jitney_plan** plan);
jitney_status jitney_rotary_plan_run(const jitney_plan* plan, const jitney_rotary_args* args,
                                     jitney_stream stream);

/* What attention gave for the same queries over some of the keys. Both tensors may have one more
   dimension, the first: so many partial results behind each other. */
typedef struct jitney_partial_state {
    const DLTensor* out; /* [batch, q_len, heads, head_dim], or [total_q, heads, head_dim] */
    const DLTensor* lse; /* fp32 [batch, heads, q_len], or [total_q, heads] */
} jitney_partial_state;

/* Merging partial results. The fields are those of jitney::MergeStatesArgs; lse may be NULL. */
typedef struct jitney_merge_states_args {
    size_t size;                       /* sizeof(jitney_merge_states_args) */
    const jitney_partial_state* parts; /* two or more partial results in all */
    size_t part_count;                 /* of these tensors: 1 to 16 */
    const DLTensor* out;               /* any part itself, with its lse, or memory apart */
    const DLTensor* lse;
} jitney_merge_states_args;

/* A part whose LSE is -inf has no influence; rows of such parts alone give 0 and LSE -inf. */
jitney_status jitney_merge_states(const jitney_merge_states_args* args, jitney_stream stream);
jitney_status jitney_merge_states_workspace(const jitney_merge_states_args* args, size_t* bytes);
jitney_status jitney_merge_states_plan_create(const jitney_merge_states_args* args,
                                              jitney_plan** plan);
jitney_status jitney_merge_states_plan_run(const jitney_plan* plan,
                                           const jitney_merge_states_args* args,
                                           jitney_stream stream);

/* Normalising rows: of s = x + residual, or of x, y = s / sqrt(mean(s^2) + eps) * weight + bias.
   The fields are those of jitney::RmsNormArgs; all but x and out may be NULL or 0. */
typedef struct jitney_rms_norm_args {
    size_t size;                /* sizeof(jitney_rms_norm_args) */
    const DLTensor* x;          /* [..., d]: bf16, fp16 or fp32 */
    const DLTensor* residual;   /* x's shape and dtype; with sum */
    const DLTensor* sum;        /* receives x + residual; may be residual itself */
    const DLTensor* weight;     /* [d]: bf16, fp16 or fp32 */
    const DLTensor* bias;       /* [d], of the weight's dtype; only with a weight */
    const DLTensor* out;        /* x's shape, in its dtype, and it may be x itself; or e4m3fn */
    const DLTensor* multiplier; /* of e4m3fn: one fp32; or */
    const DLTensor* scale;      /* fp32 [rows], which receives each row's own */
    float eps;                  /* 0: 1e-6 */
    int32_t one_plus_weight;    /* y is multiplied by 1 + weight */
    int32_t subtract_mean;      /* LayerNorm: each row's mean is taken off s first */
    int32_t reserved;           /* 0 */
} jitney_rms_norm_args;

jitney_status jitney_rms_norm(const jitney_rms_norm_args* args, jitney_stream stream);
jitney_status jitney_rms_norm_workspace(const jitney_rms_norm_args* args, size_t* bytes);
jitney_status jitney_rms_norm_plan_create(const jitney_rms_norm_args* args, jitney_plan** plan);
jitney_status jitney_rms_norm_plan_run(const jitney_plan* plan, const jitney_rms_norm_args* args,
                                       jitney_stream stream);

typedef enum jitney_activation {
    JITNEY_SILU = 0,
    JITNEY_GELU = 1, /* by erf */
    JITNEY_GELU_TANH = 2,
    JITNEY_RELU2 = 3 /* max(x, 0)^2 */
} jitney_activation;

/* activation(gate) * up, element by element. The fields are those of jitney::GatedActivationArgs;
   all but gate and out may be NULL. */
typedef struct jitney_gated_activation_args {
    size_t size;                /* sizeof(jitney_gated_activation_args) */
    const DLTensor* gate;       /* [..., d]: bf16, fp16 or fp32; without up, [..., 2d]: both */
    const DLTensor* up;         /* the gate's shape and dtype */
    const DLTensor* out;        /* [..., d], in the gate's dtype; or e4m3fn */
    const DLTensor* multiplier; /* of e4m3fn: one fp32; or */
    const DLTensor* scale;      /* fp32 [rows], which receives each row's own */
    int32_t activation;         /* a jitney_activation */
    int32_t reserved;           /* 0 */
} jitney_gated_activation_args;

jitney_status jitney_gated_activation(const jitney_gated_activation_args* args,
                                      jitney_stream stream);
jitney_status jitney_gated_activation_workspace(const jitney_gated_activation_args* args,
                                                size_t* bytes);
jitney_status jitney_gated_activation_plan_create(const jitney_gated_activation_args* args,
                                                  jitney_plan** plan);
jitney_status jitney_gated_activation_plan_run(const jitney_plan* plan,
                                               const jitney_gated_activation_args* args,
                                               jitney_stream stream);

/* Casting to the 8-bit floating formats: code = cast(x * multiplier), x is about code * scale,
   scale = 1 / multiplier. The fields are those of jitney::Fp8QuantizeArgs; each but x may be NULL.
   Numbers are tensors of one fp32 on x's device. */
typedef enum jitney_fp8_granularity {
    JITNEY_FP8_TENSOR = 0,
    JITNEY_FP8_ROW = 1,
    JITNEY_FP8_GROUP = 2, /* 128 columns of a row */
    JITNEY_FP8_BLOCK = 3  /* 128 rows of 128 columns */
} jitney_fp8_granularity;

typedef struct jitney_fp8_quantize_args {
    size_t size;                    /* sizeof(jitney_fp8_quantize_args) */
    const DLTensor* x;              /* [..., cols]: bf16, fp16 or fp32 */
    const DLTensor* out;            /* x's shape: e4m3fn or e5m2 */
    const DLTensor* out_transposed; /* [cols, rows], rows being all that lies before the last */
    const DLTensor* multiplier;     /* read; where dynamic, written */
    const DLTensor* scale;          /* receives 1 / multiplier: [1]; or by granularity [rows], */
                                    /* [rows, ceil(cols / 128)], or both divided by 128 */
    const DLTensor* amax;           /* receives the largest |x|; NaN where there is one */
    int32_t dynamic;                /* the multiplier is made of x's own amax */
    int32_t granularity;            /* a jitney_fp8_granularity; all but the first with dynamic */
    void* workspace;                /* see jitney_init_workspace; NULL: the library's own */
    size_t workspace_bytes;
    int32_t power_of_two; /* dynamic multipliers are powers of two */
    int32_t reserved;     /* 0 */
} jitney_fp8_quantize_args;

jitney_status jitney_fp8_quantize(const jitney_fp8_quantize_args* args, jitney_stream stream);
jitney_status jitney_fp8_quantize_workspace(const jitney_fp8_quantize_args* args, size_t* bytes);
jitney_status jitney_fp8_quantize_plan_create(const jitney_fp8_quantize_args* args,
                                              jitney_plan** plan);
jitney_status jitney_fp8_quantize_plan_run(const jitney_plan* plan,
                                           const jitney_fp8_quantize_args* args,
                                           jitney_stream stream);

/* Appending new keys and values to a cache. The fields are those of jitney::AppendKvArgs; what says
   where keys are is that of jitney_attention_args. */
typedef struct jitney_append_kv_args {
    size_t size;           /* sizeof(jitney_append_kv_args) */
    const DLTensor* new_k; /* [batch, new_len, kv_heads, head_dim], ragged: [total_new, ...]: the */
    const DLTensor* new_v; /* last keys and values of each request, which its length counts */
    const DLTensor* new_indptr; /* ragged: [batch + 1] */
    const DLTensor* k;
    const DLTensor* v;
    const DLTensor* kv_lens;
    const DLTensor* kv_indptr;
    const DLTensor* req_to_token;
    const DLTensor* req_pool_indices;
    const DLTensor* block_table;
    const DLTensor* kv_page_indptr;
    const DLTensor* kv_page_indices;
    const DLTensor* last_page_len;
    const DLTensor* cos;       /* with sin: the keys are rotated as they are written */
    const DLTensor* sin;       /* fp32 [positions, rotary_dim / 2] */
    const DLTensor* positions; /* int32 or int64; NULL: the place of each key in its request */
    const DLTensor* q;         /* rotated in the same launch; q_out may be q */
    const DLTensor* q_out;
    int32_t style;    /* a jitney_rotary_style */
    int32_t reserved; /* 0 */
} jitney_append_kv_args;

jitney_status jitney_append_kv(const jitney_append_kv_args* args, jitney_stream stream);
jitney_status jitney_append_kv_workspace(const jitney_append_kv_args* args, size_t* bytes);
jitney_status jitney_append_kv_plan_create(const jitney_append_kv_args* args, jitney_plan** plan);
jitney_status jitney_append_kv_plan_run(const jitney_plan* plan, const jitney_append_kv_args* args,
                                        jitney_stream stream);

/* out[m, n] = op(a)[m, k] op(b)[k, n] * dequant_scale + bias[n], or with scale_a and scale_b in the
   place of dequant_scale. The fields are those of jitney::Fp8GemmArgs; those that are NULL or 0 are
   left out. */
typedef struct jitney_fp8_gemm_args {
    size_t size;                    /* sizeof(jitney_fp8_gemm_args) */
    const DLTensor* a;              /* e4m3fn or e5m2: [m, k], or [k, m] with trans_a */
    const DLTensor* b;              /* e4m3fn or e5m2: [k, n], or [n, k] with trans_b */
    const DLTensor* out;            /* [m, n]: bf16, fp16, fp32, e4m3fn or e5m2 */
    const DLTensor* dequant_scale;  /* one fp32 */
    const DLTensor* bias;           /* [n]: bf16 or fp32 */
    const DLTensor* out_multiplier; /* one fp32, with an output in FP8 and only there */
    const DLTensor* amax; /* one fp32, with an output in FP8: receives the largest |result| */
    int32_t trans_a;
    int32_t trans_b;
    int32_t fast_accum; /* sums may be less exact than fp32, where the tensor cores' are */
    int32_t reserved;   /* 0 */
    void* workspace;    /* see jitney_init_workspace; NULL: the library's own */
    size_t workspace_bytes;
    const DLTensor* scale_a; /* fp32: [1], [m] or [m, ceil(k / 128)] */
    const DLTensor* scale_b; /* fp32: [1], [n] or [ceil(n / 128), ceil(k / 128)] */
    /* int32 [groups + 1]: the rows of a of each group. b, and scale_b and bias where they differ
       from group to group, have the groups as their first dimension */
    const DLTensor* group_indptr;
} jitney_fp8_gemm_args;

jitney_status jitney_fp8_gemm(const jitney_fp8_gemm_args* args, jitney_stream stream);
jitney_status jitney_fp8_gemm_workspace(const jitney_fp8_gemm_args* args, size_t* bytes);
jitney_status jitney_fp8_gemm_plan_create(const jitney_fp8_gemm_args* args, jitney_plan** plan);
jitney_status jitney_fp8_gemm_plan_run(const jitney_plan* plan, const jitney_fp8_gemm_args* args,
                                       jitney_stream stream);

typedef enum jitney_fp8_formats {
    JITNEY_FP8_E4M3 = 0,
    JITNEY_FP8_E5M2 = 1,
    JITNEY_FP8_HYBRID = 2 /* E4M3 forward, E5M2 for the gradient */
} jitney_fp8_formats;
typedef enum jitney_fp8_scaling {
    JITNEY_FP8_DELAYED = 0,
    JITNEY_FP8_DYNAMIC = 1
} jitney_fp8_scaling;
typedef enum jitney_fp8_amax { JITNEY_FP8_WINDOW = 0, JITNEY_FP8_LATEST = 1 } jitney_fp8_amax;

/* How a linear layer scales its tensors: jitney::Fp8Recipe. */
typedef struct jitney_fp8_recipe {
    int32_t formats; /* a jitney_fp8_formats */
    int32_t scaling; /* a jitney_fp8_scaling */
    int32_t history; /* of delayed scaling: steps that are remembered, 1 to 4096 */
    int32_t amax;    /* a jitney_fp8_amax: the window's largest counts, or the latest */
    int32_t margin;  /* each halves the multiplier: headroom; 0 to 18, E5M2 alone: to 32 */
} jitney_fp8_recipe;

/* A layer's state is a tensor of fp32 [3, columns] on the device; its bytes are all that there is
   to save. Zeros are a state without a history, which jitney_fp8_state_reset writes: its first step
   scales by the tensors' own amax. */
jitney_status jitney_fp8_state_columns(const jitney_fp8_recipe* recipe, int32_t* columns);
jitney_status jitney_fp8_state_reset(const DLTensor* state, jitney_stream stream);

/* y = x weight^T + bias on FP8. The fields are those of jitney::Fp8LinearArgs. */
typedef struct jitney_fp8_linear_args {
    size_t size;            /* sizeof(jitney_fp8_linear_args) */
    const DLTensor* x;      /* [..., in_features]: bf16, fp16 or fp32 */
    const DLTensor* weight; /* [out_features, in_features] */
    const DLTensor* bias;   /* [out_features]: bf16 or fp32; may be NULL */
    const DLTensor* y;      /* [..., out_features] */
    const DLTensor* state;
    /* What backward needs; all three, or NULL. */
    const DLTensor* x_codes;      /* x's shape, in the recipe's format */
    const DLTensor* weight_codes; /* weight's shape */
    const DLTensor* scales;       /* fp32 [2] */
    jitney_fp8_recipe recipe;
    int32_t fast_accum;
    void* workspace; /* see jitney_init_workspace; NULL: the library's own */
    size_t workspace_bytes;
} jitney_fp8_linear_args;

jitney_status jitney_fp8_linear(const jitney_fp8_linear_args* args, jitney_stream stream);
jitney_status jitney_fp8_linear_workspace(const jitney_fp8_linear_args* args, size_t* bytes);
jitney_status jitney_fp8_linear_plan_create(const jitney_fp8_linear_args* args, jitney_plan** plan);
jitney_status jitney_fp8_linear_plan_run(const jitney_plan* plan,
                                         const jitney_fp8_linear_args* args, jitney_stream stream);

/* y = x weight^T + bias where weight is in FP8 already, as checkpoints have it; x is cast on the
   way. The fields are those of jitney::Fp8LinearInferenceArgs. */
typedef struct jitney_fp8_linear_inference_args {
    size_t size;                  /* sizeof(jitney_fp8_linear_inference_args) */
    const DLTensor* x;            /* [..., in_features]: bf16, fp16 or fp32 */
    const DLTensor* weight;       /* [out_features, in_features]: e4m3fn or e5m2 */
    const DLTensor* weight_scale; /* fp32: [1], [out_features], or both sizes divided by 128 */
    const DLTensor* x_scale;      /* one fp32; NULL: x is cast by its own amax */
    const DLTensor* bias;         /* [out_features]: bf16 or fp32; may be NULL */
    const DLTensor* y;            /* [..., out_features] */
    int32_t fast_accum;
    int32_t reserved; /* 0 */
    void* workspace;  /* see jitney_init_workspace; NULL: the library's own */
    size_t workspace_bytes;
} jitney_fp8_linear_inference_args;

jitney_status jitney_fp8_linear_inference(const jitney_fp8_linear_inference_args* args,
                                          jitney_stream stream);
jitney_status jitney_fp8_linear_inference_workspace(const jitney_fp8_linear_inference_args* args,
                                                    size_t* bytes);
jitney_status jitney_fp8_linear_inference_plan_create(const jitney_fp8_linear_inference_args* args,
                                                      jitney_plan** plan);
jitney_status jitney_fp8_linear_inference_plan_run(const jitney_plan* plan,
                                                   const jitney_fp8_linear_inference_args* args,
                                                   jitney_stream stream);

/* The gradients of jitney_fp8_linear. The fields are those of jitney::Fp8LinearBackwardArgs; of the
   three gradients those that are not wanted are NULL. */
typedef struct jitney_fp8_linear_backward_args {
    size_t size;            /* sizeof(jitney_fp8_linear_backward_args) */
    const DLTensor* grad_y; /* [..., out_features]: bf16, fp16 or fp32 */
    const DLTensor* x_codes;
    const DLTensor* weight_codes;
    const DLTensor* scales;
    const DLTensor* grad_x;      /* [..., in_features] */
    const DLTensor* grad_weight; /* [out_features, in_features] */
    const DLTensor* grad_bias;   /* [out_features] */
    const DLTensor* state;
    jitney_fp8_recipe recipe;
    int32_t fast_accum;
    void* workspace;
    size_t workspace_bytes;
} jitney_fp8_linear_backward_args;

jitney_status jitney_fp8_linear_backward(const jitney_fp8_linear_backward_args* args,
                                         jitney_stream stream);
jitney_status jitney_fp8_linear_backward_workspace(const jitney_fp8_linear_backward_args* args,
                                                   size_t* bytes);
jitney_status jitney_fp8_linear_backward_plan_create(const jitney_fp8_linear_backward_args* args,
                                                     jitney_plan** plan);
jitney_status jitney_fp8_linear_backward_plan_run(const jitney_plan* plan,
                                                  const jitney_fp8_linear_backward_args* args,
                                                  jitney_stream stream);

/* Which kernel a call would run, and why not the others, as the JSON that `jitney explain --json`
   prints. Pointers of the tensors' data may be NULL. `arch` ("sm_90a") may be NULL: then it is the
   GPU that the tensors name. *json is NULL where the call fails. */
jitney_status jitney_explain_attention(const jitney_attention_args* args, const char* arch,
                                       const char** json);
jitney_status jitney_explain_rotary(const jitney_rotary_args* args, const char* arch,
                                    const char** json);
jitney_status jitney_explain_append_kv(const jitney_append_kv_args* args, const char* arch,
                                       const char** json);
jitney_status jitney_explain_merge_states(const jitney_merge_states_args* args, const char* arch,
                                          const char** json);
jitney_status jitney_explain_rms_norm(const jitney_rms_norm_args* args, const char* arch,
                                      const char** json);
jitney_status jitney_explain_gated_activation(const jitney_gated_activation_args* args,
                                              const char* arch, const char** json);
jitney_status jitney_explain_fp8_quantize(const jitney_fp8_quantize_args* args, const char* arch,
                                          const char** json);
jitney_status jitney_explain_fp8_gemm(const jitney_fp8_gemm_args* args, const char* arch,
                                      const char** json);
jitney_status jitney_explain_fp8_linear(const jitney_fp8_linear_args* args, const char* arch,
                                        const char** json);
jitney_status jitney_explain_fp8_linear_backward(const jitney_fp8_linear_backward_args* args,
                                                 const char* arch, const char** json);
jitney_status jitney_explain_fp8_linear_inference(const jitney_fp8_linear_inference_args* args,
                                                  const char* arch, const char** json);

/* Every operation and its arguments as JSON, which `jitney ops --json` prints: what a binding can
   be made of. jitney/operations.hpp says what its members mean; `c` has where each field stands in
   the struct of its operation. */
jitney_status jitney_operations_json(const char** json);
/* The calls of an operation by its name ("append_kv"), on its struct: jitney_append_kv, and
   jitney_explain_append_kv. */
jitney_status jitney_run_operation(const char* name, const void* args, jitney_stream stream);
jitney_status jitney_explain_operation(const char* name, const void* args, const char* arch,
                                       const char** json);

typedef enum jitney_backend { JITNEY_JIT = 0, JITNEY_REFERENCE = 1 } jitney_backend;

/* From here to the jitney_pop() that belongs to it, the calls of this thread use this
   jitney_backend, or this kernel ("attn_decode_mma"), and fail where they can't. They nest, and pop
   the latest. */
jitney_status jitney_push_backend(int backend);
jitney_status jitney_push_kernel(const char* kernel);
jitney_status jitney_pop(void);

typedef enum jitney_prewarm_status {
    JITNEY_PREWARM_COMPILED = 0,
    JITNEY_PREWARM_CACHED = 1,
    JITNEY_PREWARM_FAILED = 2
} jitney_prewarm_status;

/* One specialization that is done with; valid during the callback alone. */
typedef struct jitney_prewarm_entry {
    const char* spec;  /* attn_prefill_mma<head_dim=128,...>@sm_90a */
    const char* error; /* one sentence where it failed, else "" */
    double milliseconds;
    uint64_t bytes; /* of the machine code */
    jitney_prewarm_status status;
    int32_t reserved;
} jitney_prewarm_entry;

/* Called after each entry, on some thread, one call at a time, with how many are done of how many.
   It must return: no longjmp, no exception. */
typedef void (*jitney_prewarm_callback)(const jitney_prewarm_entry* entry, size_t done,
                                        size_t total, void* user);

/* Compiles each of the `count` specializations into the cache unless it is there; needs NVRTC, and
   no GPU. `jobs` compiles at a time, 0: as many as there are cores. `callback` may be NULL. One
   that fails does not stop the others; JITNEY_COMPILE_FAILED then, and the sentence is that of the
   first. A text that is no specialization is JITNEY_INVALID_ARGUMENT, before anything is compiled.
   */
jitney_status jitney_prewarm(const char* const* specs, size_t count, int jobs,
                             jitney_prewarm_callback callback, void* user);

/* A kernel of the caller's own: CUDA C++ text that is compiled, cached and launched as the
   library's kernels are. jitney/kernel.hpp says more of each field. */
typedef struct jitney_named_text {
    const char* name;
    const char* text;
} jitney_named_text;
typedef struct jitney_kernel_code {
    size_t size;                        /* sizeof(jitney_kernel_code) */
    const char* source;                 /* CUDA C++ */
    const char* function;               /* of a __global__ function: "saxpy", "own::scale<float>" */
    const char* file;                   /* the text's name in errors; NULL: "kernel.cu" */
    const jitney_named_text* constants; /* macros: a name, and the C++ text that it stands for */
    size_t constant_count;
    const jitney_named_text* headers; /* what the texts include, by name */
    size_t header_count;
    const char* const* options; /* NVRTC's, each with its value as one text */
    size_t option_count;
    uint32_t shared_bytes;  /* the most dynamic shared memory that a launch asks for, a block */
    int32_t large_clusters; /* not 0: clusters may have 16 blocks instead of 8 */
    int32_t arch_specific;  /* not 0: compiled for sm_100a instead of sm_100, and so on */
    int32_t reserved;       /* 0 */
} jitney_kernel_code;
typedef struct jitney_kernel jitney_kernel;

/* *kernel is NULL where the call fails; it stays valid as long as the process lives, and equal
   codes give the same one. Needs neither a GPU nor the compiler. */
jitney_status jitney_kernel_of(const jitney_kernel_code* code, const jitney_kernel** kernel);

/* The shape of a launch; a number of a cluster that is 0 is 1. */
typedef struct jitney_kernel_shape {
    size_t size; /* sizeof(jitney_kernel_shape) */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    uint32_t shared_bytes;          /* dynamic, a block */
    int32_t programmatic_dependent; /* not 0: may start before its predecessor ends */
    int32_t device; /* the GPU of the current context; -1: whichever that is, or GPU 0 */
} jitney_kernel_shape;

/* Launches it on `stream`, asynchronously, with `count` parameters by value: the addresses of the
   values, and the bytes of each. Loads, and compiles, where that is still to be done on this GPU.
 */
jitney_status jitney_kernel_launch(const jitney_kernel* kernel, const jitney_kernel_shape* shape,
                                   const void* const* values, const size_t* sizes, size_t count,
                                   jitney_stream stream);
/* With all parameters in one piece, as a struct of the same members in the same order has them. */
jitney_status jitney_kernel_launch_packed(const jitney_kernel* kernel,
                                          const jitney_kernel_shape* shape, const void* parameters,
                                          size_t bytes, jitney_stream stream);
/* Loads it for a GPU, or for that of the current context (-1), so that a launch finds it. */
jitney_status jitney_kernel_load(const jitney_kernel* kernel, int32_t device);
/* Compiles it into the cache unless it is there, for an arch ("sm_90a"), without a GPU. */
jitney_status jitney_kernel_prewarm(const jitney_kernel* kernel, const char* arch);
/* *text is the name under which errors, the log and `jitney cache list` show it. */
jitney_status jitney_kernel_spec(const jitney_kernel* kernel, const char* arch, const char** text);
/* *text is a line for `jitney prewarm --manifest` that carries all of its code. */
jitney_status jitney_kernel_manifest(const jitney_kernel* kernel, const char* arch,
                                     const char** text);

/* A model's config.json, and what serving it asks of the kernels: jitney/serving.hpp says more. */
typedef struct jitney_serving_args {
    size_t size;          /* sizeof(jitney_serving_args) */
    const char* config;   /* the text of the file */
    const char* arch;     /* "sm_90a"; of jitney_serving_model it may be NULL */
    const char* format;   /* what the model is served in, "bf16"; NULL: what the file says */
    const char* style;    /* of its rotary embedding, "interleaved" or "half_split"; NULL */
    const char* kv_cache; /* "paged" or "padded"; NULL: paged */
    const jitney_logits_function* logits; /* of layers whose scores need one; NULL */
} jitney_serving_args;

/* *specs has *count texts for jitney_prewarm. Where some layers or fields are not served, the call
   is JITNEY_UNSUPPORTED and names them, and the texts are those of the layers that are. */
jitney_status jitney_serving_specs(const jitney_serving_args* args, const char* const** specs,
                                   size_t* count);
/* What was read, a kind of layers at a time, as the JSON of `jitney prewarm --model --json`. */
jitney_status jitney_serving_model(const jitney_serving_args* args, const char** json);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
