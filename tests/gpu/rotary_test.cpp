// rotary_emb against the reference.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "jitney/backend.hpp"
#include "jitney/rotary.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/rotary_problem.hpp"

namespace jitney::tests {
namespace {

struct Tensors {
    explicit Tensors(const RotaryProblem& problem)
        : q(problem.q),
          k(problem.k),
          q_out(problem.q_out),
          k_out(problem.k_out),
          cos(problem.cos),
          sin(problem.sin) {
        if (problem.positions) positions.emplace(*problem.positions);
    }

    DeviceTensor q;
    DeviceTensor k;
    DeviceTensor q_out;
    DeviceTensor k_out;
    DeviceTensor cos;
    DeviceTensor sin;
    std::optional<DeviceTensor> positions;
};

void check_result(const DeviceTensor& device, const HostTensor& expected) {
    const HostTensor actual = device.download();
    CHECK(actual.surroundings_intact());
    const Comparison compared = compare(actual, expected, rotary_tolerance(expected.dtype()));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < 1e-3, compared.text);
}

void run_case(const RotaryCase& test, Random& random) {
    INFO(test.text(), " ", random.text());
    RotaryProblem problem(test, random);
    const Tensors tensors(problem);
    const Scope scope("rotary_emb");
    rotary_emb(rotary_call<RotaryArgs>(test, tensors));
    CHECK(last_run().starts_with("rotary_emb<"));

    problem.run_reference();
    check_result(tensors.q_out, problem.q_out);
    if (test.kv_heads > 0) check_result(tensors.k_out, problem.k_out);
}

}  // namespace

TEST_CASE("rotary: formats, styles, dimensions, in place or not") {
    Random random = Random::fresh();
    int count = 0;
    for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
        for (const RotaryStyle style : {RotaryStyle::interleaved, RotaryStyle::half_split}) {
            for (const auto& [head_dim, rotary_dim] :
                 {std::pair{64, 64}, std::pair{128, 32}, std::pair{80, 80}, std::pair{256, 64},
                  std::pair{96, 24}, std::pair{10, 6}, std::pair{33, 14}, std::pair{2, 2}}) {
                for (const bool in_place : {false, true}) {
                    RotaryCase test;
                    test.dtype = dtype;
                    test.style = style;
                    test.head_dim = head_dim;
                    test.rotary_dim = rotary_dim;
                    test.in_place = in_place;
                    run_case(test, random);
                    ++count;
                }
            }
        }
    }
    MESSAGE(count, " problems, ", random.text());
}

TEST_CASE("rotary: positions of either width and shape, layouts, heads") {
    Random random = Random::fresh();
    for (const Positions positions : {Positions::none, Positions::shared_32, Positions::shared_64,
                                      Positions::each_32, Positions::each_64}) {
        for (const Layout& layout :
             {Layout{}, kBhld, Layout{{}, {1, 2, 1, 8}}, Layout{{}, {0, 0, 0, 3}}}) {
            for (const std::int64_t kv_heads : {0, 1, 8}) {
                RotaryCase test;
                test.positions = positions;
                test.layout = layout;
                test.kv_heads = kv_heads;
                test.style = kv_heads == 1 ? RotaryStyle::half_split : RotaryStyle::interleaved;
                test.table_padding = kv_heads == 8 ? 3 : 0;
                run_case(test, random);
            }
        }
    }
}

TEST_CASE("rotary: many tokens and many heads") {
    Random random = Random::fresh();
    RotaryCase test;
    test.batch = is_quick() ? 50 : 700;
    test.length = 40;
    test.heads = 32;
    test.kv_heads = 8;
    test.head_dim = test.rotary_dim = 128;
    run_case(test, random);
}

TEST_CASE("rotary: a position outside the table gives NaN") {
    Random random = Random::fresh();
    RotaryCase test;
    test.positions = Positions::shared_32;
    test.kv_heads = 0;
    RotaryProblem problem(test, random);
    problem.positions->set(3, -1.0);
    problem.positions->set(5, static_cast<double>(RotaryProblem::rows));
    const DeviceTensor q(problem.q);
    const DeviceTensor q_out(problem.q_out);
    const DeviceTensor cos(problem.cos);
    const DeviceTensor sin(problem.sin);
    const DeviceTensor positions(*problem.positions);
    RotaryArgs args;
    args.q = q.view();
    args.q_out = q_out.view();
    args.cos = cos.view();
    args.sin = sin.view();
    args.positions = positions.view();
    ops::rotary_emb(args);
    const HostTensor actual = q_out.download();
    for (std::int64_t l = 0; l < test.length; ++l)
        CHECK(std::isnan(actual.at({1, l, 2, 9})) == (l == 3 || l == 5));
}

TEST_CASE("rotary: no tokens, no launch") {
    Random random = Random::fresh();
    RotaryCase test;
    test.length = 0;
    RotaryProblem problem(test, random);
    const DeviceTensor q(problem.q);
    const DeviceTensor cos(problem.cos);
    RotaryArgs args;
    args.q = args.q_out = q.view();
    args.cos = args.sin = cos.view();
    rotary_emb(args);
    CHECK(last_run().empty());
    synchronize();
}

}  // namespace jitney::tests
