/* rms_norm and gated_activation over host tensors: results, what is refused, and explain. */
#include <math.h>
#include <string.h>

#include "tests/c_abi/check.h"
#include "tests/c_abi/suites.h"
#include "tests/c_abi/tensors.h"

enum { kRows = 3, kDim = 8, kElements = kRows * kDim };

typedef struct {
    float x[kElements], residual[kElements], sum[kElements], out[kElements];
    float weight[kDim], bias[kDim];
    tensor tx, tresidual, tsum, tout, tweight, tbias;
    jitney_rms_norm_args args;
} norm;

static void make_norm(norm* made) {
    memset(made, 0, sizeof *made);
    fill(made->x, kElements, 3);
    fill(made->residual, kElements, 4);
    fill(made->weight, kDim, 5);
    fill(made->bias, kDim, 6);
    make_tensor(&made->tx, made->x, fp32, SIZES(kRows, kDim));
    make_tensor(&made->tresidual, made->residual, fp32, SIZES(kRows, kDim));
    make_tensor(&made->tsum, made->sum, fp32, SIZES(kRows, kDim));
    make_tensor(&made->tout, made->out, fp32, SIZES(kRows, kDim));
    make_tensor(&made->tweight, made->weight, fp32, SIZES(kDim));
    make_tensor(&made->tbias, made->bias, fp32, SIZES(kDim));
    made->args.size = sizeof made->args;
    made->args.x = &made->tx.view;
    made->args.out = &made->tout.view;
}

/* Of the options that the arguments have. */
static int is_normal(const norm* n) {
    int right = 1;
    for (int row = 0; row < kRows; ++row) {
        float s[kDim], mean = 0.0f, squares = 0.0f;
        for (int i = 0; i < kDim; ++i) {
            s[i] = n->x[row * kDim + i];
            if (n->args.residual != NULL) {
                s[i] += n->residual[row * kDim + i];
                right = right && n->sum[row * kDim + i] == s[i];
            }
            if (n->args.subtract_mean) mean += s[i] / kDim;
        }
        for (int i = 0; i < kDim; ++i)
            squares += (s[i] - mean) * (s[i] - mean) / kDim;
        const float eps = n->args.eps == 0.0f ? 1e-6f : n->args.eps;
        for (int i = 0; i < kDim; ++i) {
            float y = (s[i] - mean) / sqrtf(squares + eps);
            if (n->args.weight != NULL) y *= n->weight[i] + (n->args.one_plus_weight ? 1.0f : 0.0f);
            if (n->args.bias != NULL) y += n->bias[i];
            right = right && fabsf(n->out[row * kDim + i] - y) < 1e-5f;
        }
    }
    return right;
}

static void norms(void) {
    for (int options = 0; options < 32; ++options) {
        norm n;
        make_norm(&n);
        if (options & 1) {
            n.args.residual = &n.tresidual.view;
            n.args.sum = &n.tsum.view;
        }
        if (options & 2) {
            n.args.weight = &n.tweight.view;
            n.args.one_plus_weight = (options & 4) != 0;
            if (options & 8) n.args.bias = &n.tbias.view;
        }
        n.args.subtract_mean = (options & 16) != 0;
        if (options & 4) n.args.eps = 0.5f;
        CHECK_PASSED(jitney_rms_norm(&n.args, NULL));
        CHECK_TEXT(jitney_last_run(), "reference");
        CHECK(is_normal(&n));
    }
    norm n;
    make_norm(&n);
    n.args.residual = &n.tresidual.view;
    CHECK_REFUSED(jitney_rms_norm(&n.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "residual was given without sum");
    make_norm(&n);
    n.args.out = NULL;
    CHECK_REFUSED(jitney_rms_norm(&n.args, NULL), JITNEY_INVALID_ARGUMENT, "out is null");
    make_norm(&n);
    n.args.eps = -1.0f;
    CHECK_REFUSED(jitney_rms_norm(&n.args, NULL), JITNEY_INVALID_ARGUMENT, "eps is -1");
    CHECK_TEXT(jitney_last_run(), "");
}

static float activated(int activation, float x) {
    const float pi = acosf(-1.0f);
    switch (activation) {
        case JITNEY_SILU:
            return x / (1.0f + expf(-x));
        case JITNEY_GELU:
            return 0.5f * x * (1.0f + erff(x / sqrtf(2.0f)));
        case JITNEY_GELU_TANH:
            return 0.5f * x * (1.0f + tanhf(sqrtf(2.0f / pi) * (x + 0.044715f * x * x * x)));
        default:
            return x > 0.0f ? x * x : 0.0f;
    }
}

typedef struct {
    float both[2 * kElements]; /* [rows, 2 * dim], or gate and up behind each other */
    float out[kElements];
    tensor tboth, tgate, tup, tout;
    jitney_gated_activation_args args;
} gate;

static void make_gate(gate* made, int two) {
    memset(made, 0, sizeof *made);
    fill(made->both, 2 * kElements, 7);
    make_tensor(&made->tboth, made->both, fp32, SIZES(kRows, 2 * kDim));
    make_tensor(&made->tgate, made->both, fp32, SIZES(kRows, kDim));
    make_tensor(&made->tup, made->both + kElements, fp32, SIZES(kRows, kDim));
    make_tensor(&made->tout, made->out, fp32, SIZES(kRows, kDim));
    made->args.size = sizeof made->args;
    made->args.gate = two ? &made->tgate.view : &made->tboth.view;
    made->args.up = two ? &made->tup.view : NULL;
    made->args.out = &made->tout.view;
}

static void gates(void) {
    gate g;
    for (int two = 0; two < 2; ++two) {
        for (int activation = 0; activation < 4; ++activation) {
            make_gate(&g, two);
            g.args.activation = activation;
            CHECK_PASSED(jitney_gated_activation(&g.args, NULL));
            CHECK_TEXT(jitney_last_run(), "reference");
            for (int row = 0; row < kRows; ++row) {
                for (int i = 0; i < kDim; ++i) {
                    const float x = g.both[row * (two ? kDim : 2 * kDim) + i];
                    const float up =
                        two ? g.both[kElements + row * kDim + i] : g.both[(2 * row + 1) * kDim + i];
                    CHECK(fabsf(g.out[row * kDim + i] - activated(activation, x) * up) < 1e-5f);
                }
            }
        }
    }
    make_gate(&g, 0);
    g.args.activation = 4;
    CHECK_REFUSED(jitney_gated_activation(&g.args, NULL), JITNEY_INVALID_ARGUMENT,
                  "activation is 4");
    make_gate(&g, 0);
    g.args.gate = NULL;
    CHECK_REFUSED(jitney_gated_activation(&g.args, NULL), JITNEY_INVALID_ARGUMENT, "gate is null");
}

static void explained(void) {
    const char* json = NULL;
    size_t bytes = 1;
    norm n;
    gate g;
    make_norm(&n);
    make_gate(&g, 1);
    CHECK_PASSED(jitney_explain_rms_norm(&n.args, "sm_90a", &json));
    CHECK(json != NULL && strstr(json, "\"chosen\":\"rms_norm<format=fp32,weight=none,") != NULL);
    CHECK_PASSED(jitney_explain_gated_activation(&g.args, "sm_80", &json));
    CHECK(json != NULL &&
          strstr(json, "\"chosen\":\"gated_activation<format=fp32,activation=silu,") != NULL);
    CHECK_PASSED(jitney_rms_norm_workspace(&n.args, &bytes));
    CHECK(bytes == 0);
    CHECK_PASSED(jitney_gated_activation_workspace(&g.args, &bytes));
    CHECK(bytes == 0);
}

void rows_tests(void) {
    norms();
    gates();
    explained();
}
