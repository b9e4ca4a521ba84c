// Products of fp8_gemm whose rows belong to groups, each with a matrix b of its own.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/fp8_gemm.hpp"
#include "operations/fp8_gemm/fields.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/fp8_gemm_problem.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<Fp8GemmArgs>;

// Groups of 3, 0 and 4 rows of 9, from the second on.
Fp8GemmCase some_groups(Fp8Scales scales) {
    Fp8GemmCase test;
    test.m = 9;
    test.n = 130;
    test.k = 200;
    test.groups = {3, 0, 4};
    test.rows_ahead = 1;
    test.scales = scales;
    test.out = DType::fp32;
    return test;
}

Fp8GemmArgs host_args(Fp8GemmProblem& problem) {
    return problem.args(views_of(problem, [](HostTensor& tensor) { return tensor.view(); }));
}

std::vector<Bad> bad_groups() {
    return {
        {"int64", [](auto& a) { a.group_indptr->dtype = DType::int64; }, {"group_indptr", "int32"}},
        {"no group",
         [](auto& a) { a.group_indptr->shape[0] = 1; },
         {"group_indptr has the shape [1]", "at least one group"}},
        {"of another number",
         [](auto& a) { a.group_indptr->shape[0] = 3; },
         {"b has the shape [3, 130, 200]", "group_indptr 3 numbers"}},
        {"two dimensions",
         [](auto& a) {
             reshape(*a.group_indptr, {2, 2});
         },
         {"group_indptr has 2 dimensions", "[groups + 1]"}},
        {"with gaps",
         [](auto& a) { a.group_indptr->strides[0] = 2; },
         {"group_indptr", "innermost"}},
        {"no address",
         [](auto& a) { a.group_indptr->data = nullptr; },
         {"group_indptr", "no data"}},
        {"a transposed",
         [](auto& a) {
             a.trans_a = true;
             reshape(a.a, {200, 9});
         },
         {"group_indptr is given with trans_a", "[m, k]"}},
        {"one b",
         [](auto& a) {
             reshape(a.b, {130, 200});
         },
         {"b has 2 dimensions", "[groups, n, k]"}},
        {"three b and no groups",
         [](auto& a) { a.group_indptr.reset(); },
         {"b has 3 dimensions", "[n, k]"}},
        {"scales of one b",
         [](auto& a) { reshape(*a.scale_b, {130}); },
         {"scale_b has the shape [130]", "first dimension", "3 groups"}},
        {"scales of fewer columns",
         [](auto& a) {
             reshape(*a.scale_b, {3, 129});
         },
         {"scale_b has the shape [3, 129]", "it must be [3, 130]"}},
        {"biases of two groups",
         [](auto& a) { a.bias->shape[0] = 2; },
         {"bias has the shape [2, 130]", "[3, 130]"}},
        {"group_indptr in out",
         [](auto& a) { a.group_indptr->data = a.out.data; },
         {"out begins where group_indptr does"}},
    };
}

}  // namespace

TEST_CASE("bad groups of fp8_gemm are refused with a sentence") {
    Random random(5);
    Fp8GemmCase test = some_groups(kSideScales);
    test.bias = DType::fp32;
    Fp8GemmProblem problem(test, random);
    const Fp8GemmArgs good = host_args(problem);
    fp8_gemm(good);
    for (const Bad& bad : bad_groups())
        check_refused(bad, good, [](const auto& args) { fp8_gemm(args); });
}

TEST_CASE("rows of a group are multiplied with the b, the scales and the bias of the group") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const Fp8Scales scales : {kOneScale, kSideScales, kBlockScales}) {
        Fp8GemmCase test = some_groups(scales);
        test.bias = DType::fp32;
        Fp8GemmProblem problem(test, random);
        const Fp8GemmArgs args = host_args(problem);
        fp8_gemm(args);
        // Each group as a product of its own.
        Fp8GemmProblem parts = problem;
        parts.out.poison();
        const Fp8GemmArgs all = host_args(parts);
        for (const auto& [group, first, end] : {std::array<std::int64_t, 3>{0, 1, 4}, {2, 4, 8}}) {
            const auto at = [](const Tensor& tensor, std::int64_t place) {
                return static_cast<std::byte*>(tensor.data) +
                       place * tensor.strides[0] * size_of(tensor.dtype);
            };
            const auto rows = [&, from = first, to = end](Tensor tensor) {
                tensor.data = at(tensor, from);
                tensor.shape[0] = to - from;
                return tensor;
            };
            const auto of_group = [&, number = group](const Tensor& tensors,
                                                      std::initializer_list<std::int64_t> shape) {
                return Tensor::contiguous(at(tensors, number), tensors.dtype, shape,
                                          tensors.device);
            };
            Fp8GemmArgs one = all;
            one.group_indptr.reset();
            one.a = rows(all.a);
            one.out = rows(all.out);
            one.b = of_group(all.b, {130, 200});
            one.bias = of_group(*all.bias, {130});
            if (scales != kOneScale) one.scale_a = rows(*all.scale_a);
            if (scales == kSideScales) one.scale_b = of_group(*all.scale_b, {130});
            if (scales == kBlockScales) one.scale_b = of_group(*all.scale_b, {2, 2});
            fp8_gemm(one);
        }
        for (std::int64_t row = 0; row < 9; ++row) {
            for (std::int64_t column = 0; column < 130; ++column) {
                const double is = problem.out.at({row, column});
                // Rows of no group are as they were.
                if (row == 0 || row == 8) {
                    CHECK(std::isnan(is));
                } else {
                    CHECK(is == parts.out.at({row, column}));
                }
            }
        }
    }
}

TEST_CASE("one number a group, and one for all") {
    Random random(9);
    Fp8GemmCase test = some_groups(kSideScales);
    test.scale_b.one = true;
    Fp8GemmProblem problem(test, random);
    Fp8GemmArgs args = host_args(problem);
    REQUIRE(args.scale_b->ndim == 1);
    REQUIRE(args.scale_b->shape[0] == 3);
    fp8_gemm(args);
    const double of_third = problem.out.at({5, 7});
    const double third = problem.scale_b->get(2);
    args.scale_b = Tensor::contiguous(args.scale_b->data, DType::fp32, {1}, kHost);
    fp8_gemm(args);
    CHECK(problem.out.at({5, 7}) ==
          doctest::Approx(of_third / third * problem.scale_b->get(0)).epsilon(1e-6));
}

TEST_CASE("scenario: random groups" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 40; ++i) {
        Fp8GemmCase test;
        test.scales = static_cast<Fp8Scales>(random.integer(0, kBlockScales));
        test.scale_b.one = test.scales == kSideScales && random.chance(0.3);
        test.n = random.integer(1, 200);
        test.k = 16 * random.integer(1, 30);
        test.trans_b = random.chance(0.7);
        const auto groups = random.integer(1, 40);
        test.m = test.rows_ahead = random.integer(0, 3);
        for (std::int64_t group = 0; group < groups; ++group) {
            test.groups.push_back(random.chance(0.3) ? 0 : random.integer(1, 20));
            test.m += test.groups.back();
        }
        test.m += random.integer(test.m == 0 ? 1 : 0, 3);
        test.alike = random.chance(0.5);
        if (random.chance(0.5)) test.bias = DType::bf16;
        Fp8GemmProblem problem(test, random);
        Fp8GemmProblem expected = problem;
        fp8_gemm(
            problem.args(views_of(problem, [](HostTensor& tensor) { return on_gpu(tensor); })));
        CHECK(last_run().find("grouped=1") != std::string::npos);
        expected.run_reference();
        const std::string difference = expected.difference(problem.out);
        CHECK_MESSAGE(difference.empty(), test.text(), ": ", difference);
    }
}

TEST_CASE("groups reach a kernel as the arguments mean them") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random groups", fake_gpu(cache)));
}

TEST_CASE("Hopper's own kernel takes groups whose matrices lie without gaps") {
    Random random(1);
    Fp8GemmCase test = some_groups(kSideScales);
    test.k = 256;
    Fp8GemmProblem problem(test, random);
    Fp8GemmArgs args = host_args(problem);
    for_each_tensor(args, [](const ListedTensor&, Tensor& tensor) {
        tensor.device = {DeviceType::cuda, 0};
    });
    CHECK(explain(args, "sm_90a").chosen.starts_with("fp8_gemm_wgmma<"));
    CHECK(explain(args, "sm_89").chosen.find("grouped=1>@sm_89") != std::string::npos);
    args.b.strides[0] += 256;
    const Explanation apart = explain(args, "sm_90a");
    CHECK(apart.chosen.starts_with("fp8_gemm_mma<"));
    CHECK_FALSE(apart.candidates.front().accepted);
}

}  // namespace jitney::tests
