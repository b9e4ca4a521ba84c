// Keys that no query sees: whatever they hold has no influence, and pages of theirs that were given
// away are neither looked up nor read.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/serving_device.hpp"

namespace jitney::tests {
namespace {

// The kernels that take a call.
std::vector<std::string> kernels_for(const AttentionArgs& args) {
    std::vector<std::string> kernels;
    for (const std::string& kernel : kAttentionKernels) {
        if (can_run(kernel, args)) kernels.push_back(kernel);
    }
    return kernels;
}

// Runs a problem, whose unseen keys are spoilt, by every kernel that takes it; and the same with
// these keys zero, which has to give the same bits.
void run_by_all(const ServingShape& shape, Random& random, int least_kernels) {
    INFO(shape.text(), " ", random.text());
    ServingProblem problem(shape, random);
    ServingProblem clean = problem;
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        for (std::int64_t i = 0; i < shape.kv_len(request) * shape.kv_heads; ++i) {
            const std::int64_t head = i % shape.kv_heads;
            if (problem.is_seen(request, head, i / shape.kv_heads)) continue;
            for (const char* name : {"k", "v"}) {
                for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                    clean.at(name).set(problem.key_index(request, i / shape.kv_heads, head) + d,
                                       0.0);
                }
            }
        }
    }
    const std::vector<std::string> kernels =
        kernels_for(serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0})));
    CHECK(std::ssize(kernels) >= least_kernels);
    for (const std::string& kernel : kernels) {
        INFO(kernel);
        const Scope scope(kernel);
        const ServingDevice device(problem);
        attention(device.args(shape));
        CHECK(last_run().starts_with(kernel));
        const ServingDevice clean_device(clean);
        attention(clean_device.args(shape));
        CHECK(is_identical(device.download("out"), clean_device.download("out")));
        CHECK(is_identical(device.download("lse"), clean_device.download("lse")));
        ServingProblem expected = problem;
        device.check_against_reference(expected);
    }
}

ServingShape shape_of(DType dtype, std::vector<std::int64_t> q_lens,
                      std::vector<std::int64_t> kv_lens) {
    ServingShape shape;
    shape.dtype = dtype;
    shape.head_dim = 64;
    shape.kv_heads = 2;
    shape.group = 2;
    shape.q_lens = std::move(q_lens);
    shape.kv_lens = std::move(kv_lens);
    return shape;
}

int kernels_of(DType dtype) {
    return dtype == DType::fp32 ? 1 : 2;
}

// `keep` says of (batch, query, key) what the mask keeps.
void run_masked(AttentionShape shape,
                const std::function<bool(std::int64_t, std::int64_t, std::int64_t)>& keep,
                Random& random) {
    for (const std::string& kernel : kAttentionKernels) {
        const AttentionCase test = {shape, {{}, {0, 1, 0, 8}}, kernel};
        if (!can_run(test)) continue;
        INFO(test.text(), " ", random.text());
        AttentionProblem problem(shape, random, AttentionLayouts::apart(test.layout));
        const std::int64_t rows = shape.mask == MaskKind::keys ? 1 : shape.q_len;
        problem.mask->fill([&](std::int64_t i) {
            const std::int64_t row = i / shape.kv_len;
            return keep(row / rows, row % rows, i % shape.kv_len) ? 1.0 : 0.0;
        });
        problem.spoil_unseen(random);
        const DeviceProblem device(problem);
        const Scope scope(kernel);
        attention(device.args(shape));
        const HostTensor out = device.out.download();
        const HostTensor lse = device.lse.download();
        check_against_reference(problem, out, &lse);
    }
}

}  // namespace

TEST_CASE("keys outside of every query's window may be NaN") {
    Random random = Random::fresh();
    for (const DType dtype : {DType::bf16, DType::fp32}) {
        ServingShape decode = shape_of(dtype, {1}, {300});
        decode.window_left = 99;  // of 300 keys the last 100
        run_by_all(decode, random, kernels_of(dtype));
        ServingShape prefill = shape_of(dtype, {70}, {300});
        prefill.window_left = 99;
        run_by_all(prefill, random, kernels_of(dtype));
        prefill.causal = true;
        run_by_all(prefill, random, kernels_of(dtype));
        ServingShape split = shape_of(dtype, {3, 3}, {20000, 17});
        split.keys = KeyForm::padded;
        split.window_left = 9000;
        split.window_right = 0;
        run_by_all(split, random, kernels_of(dtype));
        ServingShape ragged = shape_of(dtype, {130, 1, 0, 33}, {500, 301, 40, 33});
        ragged.packed = true;
        ragged.keys = KeyForm::ragged;
        ragged.window_left = 50;
        run_by_all(ragged, random, 1);
    }
}

TEST_CASE("keys that a mask drops for all queries may be NaN") {
    Random random = Random::fresh();
    for (const DType dtype : {DType::bf16, DType::fp32}) {
        for (const std::int64_t q_len : {1, 6, 70}) {
            for (const MaskKind kind :
                 {MaskKind::keys, MaskKind::queries, MaskKind::shared_heads, MaskKind::heads}) {
                AttentionShape shape = {2, q_len, 300, 6, 2, 64, dtype, kind, false, {}};
                // Padded on the left.
                run_masked(
                    shape,
                    [](std::int64_t batch, std::int64_t, std::int64_t key) {
                        return key >= (batch % 2 == 0 ? 200 : 33);
                    },
                    random);
                // Here and there.
                run_masked(
                    shape,
                    [](std::int64_t, std::int64_t query, std::int64_t key) {
                        return key % 5 != 3 && (key + query) % 7 != 2;
                    },
                    random);
                // Every third key is kept by none but queries that causality hides it from.
                shape.causal = true;
                run_masked(
                    shape,
                    [&shape](std::int64_t, std::int64_t query, std::int64_t key) {
                        return key % 3 != 0 ||
                               (shape.mask != MaskKind::keys && key > query + 300 - shape.q_len);
                    },
                    random);
            }
        }
    }
}

TEST_CASE("pages before the first key that a query sees are not looked up" *
          doctest::test_suite(kLong)) {
    Random random = Random::fresh();
    for (const DType dtype : {DType::bf16, DType::fp32}) {
        for (const KeyForm form :
             {KeyForm::token_table, KeyForm::block_table, KeyForm::page_list}) {
            const auto run = [&](ServingShape shape, int least_kernels) {
                shape.keys = form;
                shape.page_size = form == KeyForm::token_table ? 1 : 16;
                run_by_all(shape, random, least_kernels);
                if (form != KeyForm::token_table) shape.page_size = 5;
                shape.heads_outside = form == KeyForm::block_table;
                run_by_all(shape, random, least_kernels);
            };
            ServingShape prefill = shape_of(dtype, {64}, {250});
            prefill.window_left = 63;
            run(prefill, kernels_of(dtype));
            ServingShape decode = shape_of(dtype, {1, 1}, {5000, 77});
            decode.window_left = 63;
            run(decode, kernels_of(dtype));
            decode.mask_dims = 4;
            run(decode, kernels_of(dtype));
            ServingShape appending = shape_of(dtype, {2, 2}, {400, 90});
            appending.window_left = 40;
            appending.new_len = 2;
            run(appending, 1);
            ServingShape ragged = shape_of(dtype, {100, 3, 1}, {300, 259, 64});
            ragged.packed = true;
            ragged.causal = true;
            ragged.window_left = 70;
            run(ragged, 1);
            ragged.mask_dims = 3;
            run(ragged, 1);
        }
    }
}

}  // namespace jitney::tests
