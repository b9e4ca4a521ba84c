// attn_merge_states against the reference, and merged parts of an attention against the whole.
#include "jitney/merge_states.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "jitney/backend.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/merge_problem.hpp"
#include "tests/support/problems.hpp"

namespace jitney::tests {
namespace {

void check_close(const HostTensor& actual, const HostTensor& expected, Tolerance tolerance) {
    CHECK(actual.surroundings_intact());
    const Comparison compared = compare(actual, expected, tolerance);
    CHECK_MESSAGE(compared.within, compared.text);
}

// The elements of the first part of several, or of a single one.
HostTensor first_part(const HostTensor& all, const HostTensor& like) {
    HostTensor first(like.dtype(), like.shape());
    first.fill([&](std::int64_t i) { return all.get(i); });
    return first;
}

void run_case(const MergeCase& test, Random& random) {
    INFO(test.text(), " ", random.text());
    MergeProblem problem(test, random);
    std::vector<DeviceTensor> tensors;
    tensors.reserve(2 * problem.part_outs.size());
    const auto parts = problem.parts<PartialState>(
        [&](HostTensor& host) { return tensors.emplace_back(host).view(); });
    const DeviceTensor out(problem.out);
    const DeviceTensor lse(problem.lse);
    MergeStatesArgs args;
    args.parts = parts;
    args.out = test.in_place ? MergeProblem::first_of(parts[0].out, test) : out.view();
    if (test.lse) {
        args.lse = test.in_place ? MergeProblem::first_of(parts[0].lse, test) : lse.view();
    }
    const Scope scope("attn_merge_states");
    merge_states(args);
    CHECK(last_run().starts_with("attn_merge_states<"));
    problem.run_reference();
    check_close(test.in_place ? first_part(tensors[0].download(), problem.out) : out.download(),
                problem.out, merge_tolerance(test.dtype));
    if (!test.lse) return;
    check_close(test.in_place ? first_part(tensors[1].download(), problem.lse) : lse.download(),
                problem.lse, {1e-5, 1e-5});
}

Tensor keys_of(Tensor k, std::int64_t first, std::int64_t end) {
    k.data = static_cast<std::byte*>(k.data) + first * k.strides[1] * size_of(k.dtype);
    k.shape[1] = end - first;
    return k;
}

}  // namespace

TEST_CASE("merging: formats, dimensions, forms of the parts, in place or not") {
    Random random = Random::fresh();
    for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
        for (const std::int64_t head_dim : {8, 33, 64, 128, 200, 512}) {
            for (int i = 0; i < 4; ++i) {
                MergeCase test = random_merge_case(random);
                test.dtype = dtype;
                test.head_dim = head_dim;
                run_case(test, random);
            }
        }
    }
}

TEST_CASE("merging: many rows") {
    Random random = Random::fresh();
    MergeCase test;
    test.q_len = is_quick() ? 100 : 2000;
    test.heads = 32;
    test.head_dim = 128;
    test.parts = {0, 3, 0};
    run_case(test, random);
}

// Two empties merge to an empty one, never to NaN.
TEST_CASE("merging: two results that saw nothing give (0, -inf)") {
    Random random = Random::fresh();
    MergeProblem problem(MergeCase{}, random);
    for (HostTensor& lse : problem.part_lses)
        lse.fill([](std::int64_t) { return -std::numeric_limits<double>::infinity(); });
    for (HostTensor& out : problem.part_outs)
        out.poison();
    std::vector<DeviceTensor> tensors;
    tensors.reserve(4);
    const auto parts = problem.parts<PartialState>(
        [&](HostTensor& host) { return tensors.emplace_back(host).view(); });
    const DeviceTensor out(problem.out);
    const DeviceTensor lse(problem.lse);
    MergeStatesArgs args;
    args.parts = parts;
    args.out = out.view();
    args.lse = lse.view();
    ops::merge_states(args);
    problem.run_reference();
    check_close(out.download(), problem.out, {});
    check_close(lse.download(), problem.lse, {});
}

TEST_CASE("merging: attention over two parts of the keys is attention over all") {
    Random random = Random::fresh();
    AttentionShape shape;
    shape.batch = 2;
    shape.q_len = 3;
    shape.kv_len = 700;
    shape.q_heads = 8;
    shape.kv_heads = 2;
    shape.head_dim = 128;
    AttentionProblem problem(shape, random);
    const DeviceTensor q(problem.q);
    const DeviceTensor k(problem.k);
    const DeviceTensor v(problem.v);
    const DeviceTensor outs[2] = {DeviceTensor(problem.out), DeviceTensor(problem.out)};
    const DeviceTensor lses[2] = {DeviceTensor(problem.lse), DeviceTensor(problem.lse)};
    PartialState parts[2];
    for (std::size_t i = 0; i < 2; ++i) {
        AttentionArgs args;
        args.q = q.view();
        args.k = keys_of(k.view(), i == 0 ? 0 : 123, i == 0 ? 123 : 700);
        args.v = keys_of(v.view(), i == 0 ? 0 : 123, i == 0 ? 123 : 700);
        args.out = outs[i].view();
        args.lse = lses[i].view();
        attention(args);
        parts[i] = {outs[i].view(), lses[i].view()};
    }
    MergeStatesArgs args;
    args.parts = parts;
    args.out = parts[0].out;
    args.lse = parts[0].lse;
    merge_states(args);
    reference::attention(problem.reference_call());
    check_close(outs[0].download(), problem.out, {1e-2, 1e-2});
    check_close(lses[0].download(), problem.lse, {1e-3, 1e-4});
}

}  // namespace jitney::tests
