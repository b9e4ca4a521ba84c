// The scales of fp8_gemm that a and b have apart: which shapes mean what, which strides are
// followed, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/arithmetic.hpp"
#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/fp8_gemm.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/fp8_gemm_problem.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<Fp8GemmArgs>;

// A product on the host with fp32 results, beside which the scales lie in memory of their own.
struct Product {
    Product(std::int64_t rows, std::int64_t columns, std::int64_t length)
        : m(rows),
          n(columns),
          k(length),
          a(DType::fp8_e4m3, {m, k}),
          b(DType::fp8_e4m3, {n, k}),
          out(DType::fp32, {m, n}) {
        Random random(7);
        a.fill_normal(random);
        b.fill_normal(random);
        for (std::size_t i = 0; i < scales.size(); ++i)
            scales[i] = static_cast<float>(random.uniform(0.25, 4.0));
    }

    // fp32 from number `first` on.
    Tensor numbers(std::int64_t first, std::vector<std::int64_t> shape,
                   std::vector<std::int64_t> strides) {
        Tensor tensor;
        tensor.data = scales.data() + first;
        tensor.dtype = DType::fp32;
        tensor.device = kHost;
        tensor.ndim = static_cast<int>(shape.size());
        std::copy(shape.begin(), shape.end(), tensor.shape.begin());
        std::copy(strides.begin(), strides.end(), tensor.strides.begin());
        return tensor;
    }

    Fp8GemmArgs args(const Tensor& scale_a, const Tensor& scale_b) {
        Fp8GemmArgs args;
        args.a = a.view();
        args.b = b.view();
        args.trans_b = true;
        args.out = out.view();
        args.scale_a = scale_a;
        args.scale_b = scale_b;
        return args;
    }

    // The product by its definition: `of_a(row, block)` and `of_b(column, block)` are the numbers
    // of the scales, counted in `scales`.
    template <class OfA, class OfB>
    void check(const Tensor& scale_a, const Tensor& scale_b, const OfA& of_a, const OfB& of_b) {
        fp8_gemm(args(scale_a, scale_b));
        const auto number = [this](std::int64_t i) {
            return static_cast<double>(scales[static_cast<std::size_t>(i)]);
        };
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::int64_t at = 0; at < k; ++at) {
                    sum += a.at({i, at}) * number(of_a(i, at / 128)) * b.at({j, at}) *
                           number(of_b(j, at / 128));
                }
                REQUIRE(out.at({i, j}) == doctest::Approx(sum).epsilon(1e-6));
            }
        }
    }

    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    HostTensor a;
    HostTensor b;
    HostTensor out;
    std::vector<float> scales = std::vector<float>(4096);
};

std::vector<Bad> bad_scales() {
    return {
        {"none",
         [](auto& a) {
             a.scale_a.reset();
             a.scale_b.reset();
         },
         {"no scale", "dequant_scale, or scale_a and scale_b"}},
        {"scale_a alone", [](auto& a) { a.scale_b.reset(); }, {"scale_a is given without scale_b"}},
        {"scale_b alone", [](auto& a) { a.scale_a.reset(); }, {"scale_b is given without scale_a"}},
        {"all three",
         [](auto& a) {
             a.dequant_scale = a.scale_a;
             a.dequant_scale->shape[0] = 1;
         },
         {"dequant_scale and scale_a are both given"}},
        {"dequant_scale beside scale_b",
         [](auto& a) {
             a.dequant_scale = a.scale_a;
             a.dequant_scale->shape[0] = 1;
             a.scale_a.reset();
         },
         {"dequant_scale and scale_b are both given"}},
        {"rows of another number",
         [](auto& a) { a.scale_a->shape[0] = 5; },
         {"scale_a has the shape [5]", "one number a row of a it must be [6]"}},
        {"as many as b has columns",
         [](auto& a) { a.scale_a->shape[0] = 8; },
         {"scale_a has the shape [8]", "[6]"}},
        {"columns of another number",
         [](auto& a) { a.scale_b->shape[0] = 6; },
         {"scale_b has the shape [6]", "one number a column of b it must be [8]"}},
        {"none of the rows", [](auto& a) { a.scale_a->shape[0] = 0; }, {"scale_a", "[0]", "[6]"}},
        {"rows as a column",
         [](auto& a) {
             reshape(*a.scale_a, {6, 1});
         },
         {"scale_a has the shape [6, 1]", "[6, 3]", "and with one a row of a [6]"}},
        {"columns as a row",
         [](auto& a) {
             reshape(*a.scale_b, {1, 8});
         },
         {"scale_b has the shape [1, 8]", "[1, 3]", "and with one a column of b [8]"}},
        {"blocks of a alone",
         [](auto& a) {
             reshape(*a.scale_a, {6, 3});
         },
         {"scale_a has the shape [6, 3] and scale_b [8]", "both"}},
        {"blocks of b alone",
         [](auto& a) {
             reshape(*a.scale_b, {1, 3});
         },
         {"scale_a has the shape [6] and scale_b [1, 3]", "both"}},
        {"blocks of one column",
         [](auto& a) {
             reshape(*a.scale_a, {6, 3});
             reshape(*a.scale_b, {8, 3});
         },
         {"scale_b has the shape [8, 3]", "[1, 3]"}},
        {"three dimensions",
         [](auto& a) {
             reshape(*a.scale_a, {6, 3, 1});
         },
         {"scale_a has 3 dimensions", "[m, ceil(k / 128)]"}},
        {"bf16", [](auto& a) { a.scale_b->dtype = DType::bf16; }, {"scale_b", "bf16", "fp32"}},
        {"no address", [](auto& a) { a.scale_a->data = nullptr; }, {"scale_a", "no data"}},
        {"a crooked address",
         [](auto& a) { a.scale_b->data = static_cast<std::byte*>(a.scale_b->data) + 2; },
         {"scale_b", "4 bytes"}},
        {"another GPU",
         [](auto& a) {
             a.scale_a->device = {DeviceType::cuda, 7};
         },
         {"scale_a", "GPU 7"}},
        {"a stride out of memory",
         [](auto& a) { a.scale_a->strides[0] = std::int64_t{1} << 60; },
         {"scale_a", "memory"}},
        {"out in scale_a",
         [](auto& a) { a.out.data = a.scale_a->data; },
         {"out begins where scale_a does"}},
        {"scale_b in out",
         [](auto& a) { a.scale_b->data = static_cast<std::byte*>(a.out.data) + 160; },
         {"out overlaps scale_b"}},
    };
}

void check_all_refused(const Device& device) {
    Product product(6, 8, 300);
    Fp8GemmArgs good = product.args(product.numbers(0, {6}, {1}), product.numbers(100, {8}, {1}));
    for (Tensor* tensor : {&good.a, &good.b, &good.out, &*good.scale_a, &*good.scale_b})
        tensor->device = device;
    for (const Bad& bad : bad_scales())
        check_refused(bad, good, [](const auto& args) { fp8_gemm(args); });
}

}  // namespace

TEST_CASE("bad scales of fp8_gemm are refused with a sentence") {
    check_all_refused({DeviceType::cpu, 0});
}

TEST_CASE("scenario: bad scales" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    check_all_refused({DeviceType::cuda, 0});
    CHECK(fake.launches == 0);
}

TEST_CASE("bad scales of fp8_gemm reach no GPU") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: bad scales", fake_gpu(cache)));
}

TEST_CASE("one dimension is of rows and columns, or one number, whatever m, n and k are") {
    // As many rows as columns, as blocks of k, and one.
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{3, 3, 300},
                                  {1, 1, 128},
                                  {1, 7, 20},
                                  {5, 1, 129},
                                  {2, 200, 256}}) {
        Product product(m, n, k);
        const auto row = [](std::int64_t i, std::int64_t) { return i; };
        const auto column = [](std::int64_t j, std::int64_t) { return 1000 + j; };
        const auto first_a = [](std::int64_t, std::int64_t) { return 0; };
        const auto first_b = [](std::int64_t, std::int64_t) { return 1000; };
        const Tensor rows = product.numbers(0, {m}, {1});
        const Tensor columns = product.numbers(1000, {n}, {1});
        const Tensor of_a = product.numbers(0, {1}, {1});
        const Tensor of_b = product.numbers(1000, {}, {});
        product.check(rows, columns, row, column);
        product.check(of_a, columns, first_a, column);
        product.check(rows, of_b, row, first_b);
        product.check(of_a, of_b, first_a, first_b);
    }
}

TEST_CASE("two dimensions are of blocks, whatever m, n and k are") {
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{3, 3, 300},
                                  {1, 1, 1},
                                  {3, 5, 128},
                                  {2, 300, 129},
                                  {1, 129, 640}}) {
        Product product(m, n, k);
        const std::int64_t blocks = ceil_div(k, std::int64_t{128});
        const std::int64_t across = ceil_div(n, std::int64_t{128});
        product.check(
            product.numbers(0, {m, blocks}, {blocks, 1}),
            product.numbers(1000, {across, blocks}, {blocks, 1}),
            [&](std::int64_t i, std::int64_t at) { return i * blocks + at; },
            [&](std::int64_t j, std::int64_t at) { return 1000 + j / 128 * blocks + at; });
    }
}

TEST_CASE("strides of scales are followed: turned, with gaps, equal, backwards and of 0") {
    Product product(4, 300, 400);
    const std::int64_t blocks = 4;
    for (const auto& [by_row, by_block] : {std::pair<std::int64_t, std::int64_t>{1, 4},
                                           {1, 9},
                                           {7, 1},
                                           {1, 1},
                                           {5, 5},
                                           {0, 1},
                                           {3, 0},
                                           {0, 0},
                                           {-4, 1}}) {
        const std::int64_t first = 500;
        product.check(
            product.numbers(first, {4, blocks}, {by_row, by_block}),
            product.numbers(first + 1000, {3, blocks}, {by_block, by_row}),
            [&, r = by_row, s = by_block](std::int64_t i, std::int64_t at) {
                return first + i * r + at * s;
            },
            [&, r = by_row, s = by_block](std::int64_t j, std::int64_t at) {
                return first + 1000 + j / 128 * s + at * r;
            });
        product.check(
            product.numbers(first, {4}, {by_row}), product.numbers(first + 1000, {300}, {by_block}),
            [&, r = by_row](std::int64_t i, std::int64_t) { return first + i * r; },
            [&, s = by_block](std::int64_t j, std::int64_t) { return first + 1000 + j * s; });
    }
}

TEST_CASE("a sum of nothing is 0, whatever the scales") {
    Product product(2, 3, 0);
    for (float& scale : product.scales)
        scale = HUGE_VALF;
    fp8_gemm(product.args(product.numbers(0, {2}, {1}), product.numbers(0, {3}, {1})));
    CHECK(product.out.at({1, 2}) == 0.0);
    product.out.poison();
    fp8_gemm(product.args(product.numbers(0, {2, 0}, {0, 1}), product.numbers(0, {1, 0}, {0, 1})));
    CHECK(product.out.at({1, 2}) == 0.0);
    CHECK(product.out.at({0, 0}) == 0.0);
}

TEST_CASE("scenario: random scales" * doctest::skip()) {
    start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 60; ++i) {
        Fp8GemmCase test;
        test.scales = random.chance(0.5) ? kSideScales : kBlockScales;
        test.m = random.integer(1, 90);
        test.n = random.integer(1, 300);
        test.k = random.integer(0, 400);
        test.trans_a = random.chance(0.5);
        test.trans_b = random.chance(0.5);
        test.fast_accum = random.chance(0.5);
        if (test.scales == kSideScales) {
            test.scale_a = {random.chance(0.3), {{}, {random.integer(0, 3)}}};
            test.scale_b = {random.chance(0.3), {}};
        } else if (random.chance(0.7)) {
            test.scale_a.memory = {{1, 0}, {0, random.integer(0, 3)}};
            test.scale_b.memory = {{0, 1}, {random.integer(0, 3), 1}};
        }
        Fp8GemmProblem problem(test, random);
        Fp8GemmProblem expected = problem;
        fp8_gemm(
            problem.args(views_of(problem, [](HostTensor& tensor) { return on_gpu(tensor); })));
        CHECK(last_run().find(test.scales == kSideScales ? "scales=sides" : "scales=blocks") !=
              std::string::npos);
        expected.run_reference();
        const std::string difference = expected.difference(problem.out);
        CHECK_MESSAGE(difference.empty(), test.text(), ": ", difference);
    }
}

TEST_CASE("scales reach a kernel as the arguments mean them") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: random scales", fake_gpu(cache)));
}

TEST_CASE("explain names the scales, and both kernels take them") {
    Product product(64, 512, 1024);
    Fp8GemmArgs args = product.args(product.numbers(0, {64}, {1}), product.numbers(0, {1}, {1}));
    for (Tensor* tensor : {&args.a, &args.b, &args.out, &*args.scale_a, &*args.scale_b})
        tensor->device = {DeviceType::cuda, 0};
    const auto chosen = [&args](bool trans_b) {
        Fp8GemmArgs call = args;
        call.trans_b = trans_b;
        if (!trans_b) reshape(call.b, {1024, 512});
        return explain(call, "sm_90a").chosen;
    };
    const auto has = [](const std::string& text, const char* words) {
        return text.find(words) != std::string::npos;
    };
    CHECK(has(chosen(true), "fp8_gemm_wgmma<"));
    CHECK(has(chosen(true), ",scales=sides"));
    CHECK(has(chosen(false), "fp8_gemm_mma<"));
    CHECK(has(chosen(false), ",scales=sides>"));
    reshape(*args.scale_a, {64, 8});
    reshape(*args.scale_b, {4, 8});
    args.fast_accum = true;  // changes nothing
    CHECK(has(chosen(true), "promote=1,scales=blocks"));
    CHECK(has(chosen(false), "promote=1,scales=blocks>"));
}

}  // namespace jitney::tests
