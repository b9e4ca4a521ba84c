// merge_states: on host tensors, to the launches of a driver that computes in software, and calls
// that are refused.
#include "jitney/merge_states.hpp"

#include <limits>

#include "jitney/backend.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/merge_problem.hpp"

namespace jitney::tests {
namespace {

// The call, its tensors on that device; `parts` is what the call points to.
MergeStatesArgs args_of(MergeProblem& problem, std::vector<PartialState>& parts,
                        DeviceType type = DeviceType::cuda) {
    const auto view = [type](HostTensor& tensor) { return tensor.view({type, 0}); };
    parts = problem.parts<PartialState>(view);
    MergeStatesArgs args;
    args.parts = parts;
    args.out = problem.test.in_place ? MergeProblem::first_of(parts[0].out, problem.test)
                                     : view(problem.out);
    if (problem.test.lse) {
        args.lse = problem.test.in_place ? MergeProblem::first_of(parts[0].lse, problem.test)
                                         : view(problem.lse);
    }
    return args;
}

void check_random(Random& random, DeviceType type) {
    MergeCase test = random_merge_case(random);
    test.dtype = random.chance(0.5) ? DType::bf16 : DType::fp32;
    test.head_dim = random.integer(1, 40);
    CAPTURE(test.text());
    MergeProblem problem(test, random);
    MergeProblem expected = problem;
    expected.run_reference();
    std::vector<PartialState> parts;
    const MergeStatesArgs args = args_of(problem, parts, type);
    merge_states(args);
    if (type == DeviceType::cpu) {
        CHECK(last_run() == "reference");
    } else {
        CHECK(last_run() == explain(args).chosen);
        CHECK(last_run().starts_with("attn_merge_states<"));
    }
    HostTensor& out = test.in_place ? problem.part_outs[0] : problem.out;
    HostTensor& lse = test.in_place ? problem.part_lses[0] : problem.lse;
    CHECK(out.surroundings_intact());
    for (std::int64_t i = 0; i < expected.out.elements(); ++i)
        REQUIRE(out.get(i) == expected.out.get(i));
    for (std::int64_t i = 0; test.lse && i < expected.lse.elements(); ++i)
        REQUIRE(lse.get(i) == expected.lse.get(i));
}

}  // namespace

TEST_CASE("merging on host tensors is the reference's") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 60; ++i)
        check_random(random, DeviceType::cpu);
}

TEST_CASE("scenario: merging" * doctest::skip()) {
    fake::Cuda& fake = start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 60; ++i)
        check_random(random, DeviceType::cuda);

    MergeProblem problem(MergeCase{}, random);
    std::vector<PartialState> parts;
    MergeStatesArgs args = args_of(problem, parts);
    ops::merge_states(args);
    CHECK(last_run().starts_with("attn_merge_states<head_dim=64,format=bf16,width=2>"));
    merge_states(args);
    fake.kernel = nullptr;  // the software would allocate
    const int launches = fake.launches;
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i)
        merge_states(args);
    CHECK(allocations_of_this_thread() == before);
    CHECK(fake.launches == launches + 100);

    // No rows: no launch.
    for (Tensor* tensor :
         {&args.out, &parts[0].out, &parts[1].out, &*args.lse, &parts[0].lse, &parts[1].lse})
        tensor->shape[0] = 0;
    merge_states(args);
    CHECK(last_run().empty());
    CHECK(fake.launches == launches + 100);
}

TEST_CASE("merging reaches its kernel as it was meant") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: merging", fake_gpu(cache)));
}

TEST_CASE("calls of merge_states that can't be meant") {
    Random random(1);
    MergeProblem problem(MergeCase{}, random);
    std::vector<PartialState> parts;
    const MergeStatesArgs good = args_of(problem, parts, DeviceType::cpu);
    struct Call {
        MergeStatesArgs args;
        std::vector<PartialState> parts;
    };
    const std::vector<BadCall<Call>> bad = {
        {"no parts", [](Call& c) { c.parts.clear(); }, {"0 parts", "1 to 16"}},
        {"one part", [](Call& c) { c.parts.pop_back(); }, {"1 partial results", "2 to"}},
        {"17 parts", [](Call& c) { c.parts.resize(17, c.parts[0]); }, {"17 parts"}},
        {"integers", [](Call& c) { c.args.out.dtype = DType::int32; }, {"out", "int32"}},
        {"a part of another dtype",
         [](Call& c) { c.parts[1].out.dtype = DType::fp16; },
         {"a part's out", "fp16", "bf16"}},
        {"a part of another shape",
         [](Call& c) { c.parts[1].out.shape[1] = 4; },
         {"a part's out", "[2, 4, 3, 64]", "[2, 5, 3, 64]"}},
        {"an LSE with the heads behind",
         [](Call& c) { std::swap(c.parts[0].lse.shape[1], c.parts[0].lse.shape[2]); },
         {"a part's lse", "[2, 5, 3]", "[2, 3, 5]"}},
        {"a bf16 LSE",
         [](Call& c) { c.parts[0].lse.dtype = DType::bf16; },
         {"a part's lse", "bf16", "fp32"}},
        {"a bf16 LSE to write",
         [](Call& c) { c.args.lse->dtype = DType::bf16; },
         {"lse", "bf16", "fp32"}},
        {"two dimensions", [](Call& c) { c.args.out.ndim = 2; }, {"out", "2 dimensions"}},
        {"parts with and without their number",
         [](Call& c) { c.parts[0].out.ndim = 5; },
         {"number of parts"}},
        {"no data", [](Call& c) { c.parts[0].out.data = nullptr; }, {"a part's out", "no data"}},
        {"in place with other strides",
         [](Call& c) {
             c.args.out.data = c.parts[0].out.data;
             c.args.out.strides[1] *= 2;
             c.args.out.strides[0] *= 2;
         },
         {"begins where", "strides", "dimension"}},
        {"the LSE onto the result",
         [](Call& c) { c.args.lse->data = c.args.out.data; },
         {"lse", "out", "overlap"}},
        {"in place without the LSE",
         [](Call& c) {
             c.args.out = c.parts[0].out;
             c.args.lse.reset();
         },
         {"out is a part's out", "lse was left out"}},
        {"in place of one part, the LSE of another",
         [](Call& c) {
             c.args.out = c.parts[0].out;
             c.args.lse = c.parts[1].lse;
         },
         {"out is a part's", "lse is not that part's"}},
        {"in place of one part, the LSE apart",
         [](Call& c) { c.args.out = c.parts[0].out; },
         {"out is a part's", "lse is not that part's"}},
        {"the LSE alone in place",
         [](Call& c) { c.args.lse = c.parts[1].lse; },
         {"lse is a part's", "out is not that part's"}},
        {"another device",
         [](Call& c) {
             c.parts[1].lse.device = {DeviceType::cuda, 0};
         },
         {"a part's lse", "GPU 0", "host memory"}},
        {"head_dim 0",
         [](Call& c) {
             for (Tensor* t : {&c.args.out, &c.parts[0].out, &c.parts[1].out})
                 t->shape[3] = 0;
         },
         {"head_dim"}},
        {"rows that overlap", [](Call& c) { c.args.out.strides[2] = 8; }, {"out", "overlap"}},
    };
    for (const BadCall<Call>& each : bad) {
        check_refused(each, Call{good, parts}, [](Call& call) {
            call.args.parts = call.parts;
            merge_states(call.args);
        });
    }
    for (const PartialState& part : parts) {
        MergeStatesArgs in_place = good;
        in_place.out = part.out;
        in_place.lse = part.lse;
        merge_states(in_place);
    }
    CHECK_THROWS_AS(ops::merge_states(good), Error);
    CHECK(last_run().empty());
}

TEST_CASE("in place among several results in one tensor, out and LSE are of one number") {
    HostTensor outs(DType::fp32, {3, 1, 2, 2, 8});
    HostTensor lses(DType::fp32, {3, 1, 2, 2});
    const PartialState all = {outs.view(), lses.view()};
    const auto nth = [](const Tensor& stack, std::int64_t number) {
        Tensor one = stack;
        one.ndim -= 1;
        for (std::size_t i = 0; i < static_cast<std::size_t>(one.ndim); ++i) {
            one.shape[i] = stack.shape[i + 1];
            one.strides[i] = stack.strides[i + 1];
        }
        one.data = static_cast<float*>(stack.data) + number * stack.strides[0];
        return one;
    };
    for (std::int64_t out = 0; out < 3; ++out) {
        for (std::int64_t lse = 0; lse < 3; ++lse) {
            CAPTURE(out);
            CAPTURE(lse);
            MergeStatesArgs args;
            args.parts = {&all, 1};
            args.out = nth(all.out, out);
            args.lse = nth(all.lse, lse);
            if (out == lse) {
                merge_states(args);
                CHECK(last_run() == "reference");
            } else {
                CHECK_THROWS_WITH_AS(merge_states(args), doctest::Contains("not that part's"),
                                     Error);
            }
        }
    }
}

}  // namespace jitney::tests
