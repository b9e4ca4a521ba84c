#include "tests/c_abi/tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const DLDataType fp32 = {kDLFloat, 32, 1};
const DLDataType fp16 = {kDLFloat, 16, 1};
const DLDataType bf16 = {kDLBfloat, 16, 1};
const DLDataType int32 = {kDLInt, 32, 1};
const DLDataType int64 = {kDLInt, 64, 1};
const DLDataType boolean = {JITNEY_DL_BOOL, 8, 1};
const DLDataType uint8 = {kDLUInt, 8, 1};

void make_tensor(tensor* made, void* data, DLDataType type, const int64_t* sizes) {
    memset(made, 0, sizeof *made);
    made->view.data = data;
    made->view.device.device_type = kDLCPU;
    made->view.dtype = type;
    made->view.shape = made->shape;
    while (sizes[made->view.ndim] >= 0) {
        made->shape[made->view.ndim] = sizes[made->view.ndim];
        ++made->view.ndim;
    }
}

void set_strides(tensor* made, const int64_t* strides) {
    memcpy(made->strides, strides, (size_t)made->view.ndim * sizeof *strides);
    made->view.strides = made->strides;
}

void fill(float* values, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1u << 23) - 1.0f;
    }
}

void make_problem(problem* made) {
    memset(made, 0, sizeof *made);
    fill(made->q, sizeof made->q / sizeof(float), 1);
    fill(made->k, sizeof made->k / sizeof(float), 2);
    fill(made->v, sizeof made->v / sizeof(float), 3);
    fill(made->out, sizeof made->out / sizeof(float), 4); /* to be overwritten */
    fill(made->slopes, kQHeads, 5);
    fill(made->sinks, kQHeads, 6);
    for (size_t i = 0; i < sizeof made->mask; ++i)
        made->mask[i] = (uint8_t)(i * i % 3 != 1);
    make_tensor(&made->tq, made->q, fp32, SIZES(kBatch, kQLen, kQHeads, kHeadDim));
    make_tensor(&made->tk, made->k, fp32, SIZES(kBatch, kKvLen, kKvHeads, kHeadDim));
    make_tensor(&made->tv, made->v, fp32, SIZES(kBatch, kKvLen, kKvHeads, kHeadDim));
    make_tensor(&made->tout, made->out, fp32, SIZES(kBatch, kQLen, kQHeads, kHeadDim));
    make_tensor(&made->tlse, made->lse, fp32, SIZES(kBatch, kQHeads, kQLen));
    make_tensor(&made->tmask, made->mask, boolean, SIZES(kBatch, kQLen, kKvLen));
    made->args.size = sizeof made->args;
    made->args.q = &made->tq.view;
    made->args.k = &made->tk.view;
    made->args.v = &made->tv.view;
    made->args.out = &made->tout.view;
}

static int is_near(double got, double want) {
    return fabs(got - want) <= 1e-5 + 1e-5 * fabs(want);
}

static int is_seen(const problem* solved, int b, int i, int j) {
    const jitney_attention_args* args = &solved->args;
    const int place = i + (kKvLen - kQLen); /* of the query, among the keys */
    if (args->causal && j > place) return 0;
    if (args->has_window) {
        if (args->window_left >= 0 && j < place - args->window_left) return 0;
        if (args->window_right >= 0 && j > place + args->window_right) return 0;
    }
    return args->mask == NULL || solved->mask[(b * kQLen + i) * kKvLen + j];
}

/* What the options make of a scaled score. */
static double changed(const problem* solved, double score, int i, int j, int h) {
    const jitney_attention_args* args = &solved->args;
    const double cap = (double)args->softcap;
    if (cap > 0) score = cap * tanh(score / cap);
    if (args->alibi_slopes != NULL)
        score -= (double)solved->slopes[h] * abs(i + (kKvLen - kQLen) - j);
    return score;
}

/* One row: query i of head h of request b. */
static int is_row_right(const problem* solved, int b, int i, int h) {
    const jitney_attention_args* args = &solved->args;
    const int kv_head = h / (kQHeads / kKvHeads);
    const float* q = solved->q + ((b * kQLen + i) * kQHeads + h) * kHeadDim;
    const float* out = solved->out + ((b * kQLen + i) * kQHeads + h) * kHeadDim;
    const double scale = args->scale != 0 ? (double)args->scale : 1 / sqrt((double)kHeadDim);
    double total = 0;
    double sums[kHeadDim] = {0};
    for (int j = 0; j < kKvLen; ++j) {
        if (!is_seen(solved, b, i, j)) continue;
        const int row = ((b * kKvLen + j) * kKvHeads + kv_head) * kHeadDim;
        double score = 0;
        for (int d = 0; d < kHeadDim; ++d)
            score += (double)q[d] * (double)solved->k[row + d];
        const double weight = exp(changed(solved, scale * score, i, j, h));
        total += weight;
        for (int d = 0; d < kHeadDim; ++d)
            sums[d] += weight * (double)solved->v[row + d];
    }
    if (total > 0 && args->sinks != NULL) total += exp((double)solved->sinks[h]);
    int right = 1;
    for (int d = 0; d < kHeadDim; ++d)
        right = right && is_near((double)out[d], total > 0 ? sums[d] / total : 0);
    if (args->lse != NULL && total > 0)
        right = right && is_near((double)solved->lse[(b * kQHeads + h) * kQLen + i], log(total));
    if (!right) fprintf(stderr, "wrong: request %d, query %d, head %d\n", b, i, h);
    return right;
}

int is_right(const problem* solved) {
    int right = 1;
    for (int b = 0; b < kBatch; ++b)
        for (int i = 0; i < kQLen; ++i)
            for (int h = 0; h < kQHeads; ++h)
                right = is_row_right(solved, b, i, h) && right;
    return right;
}
