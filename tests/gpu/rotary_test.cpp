// rotary_emb against the reference.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "jitney/backend.hpp"
#include "jitney/rotary.hpp"
#include "reference/rotary.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/compare.hpp"

namespace jitney::tests {
namespace {

enum class Positions { none, shared_32, shared_64, each_32, each_64 };

struct RotaryCase {
    DType dtype = DType::bf16;
    RotaryStyle style = RotaryStyle::interleaved;
    std::int64_t batch = 2;
    std::int64_t length = 17;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 2;  // 0: no k
    std::int64_t head_dim = 64;
    std::int64_t rotary_dim = 64;
    Positions positions = Positions::none;
    bool in_place = false;
    Layout layout = {};
    std::int64_t table_padding = 0;
};

HostTensor make_positions(const RotaryCase& test, std::int64_t rows, Random& random) {
    const bool each = test.positions == Positions::each_32 || test.positions == Positions::each_64;
    const bool wide =
        test.positions == Positions::shared_64 || test.positions == Positions::each_64;
    HostTensor positions(wide ? DType::int64 : DType::int32,
                         each ? std::vector<std::int64_t>{test.batch, test.length}
                              : std::vector<std::int64_t>{test.length});
    positions.fill([&](std::int64_t) { return static_cast<double>(random.integer(0, rows - 1)); });
    return positions;
}

// The tensors of a case in host memory, and the same on the device.
struct RotaryProblem {
    RotaryProblem(const RotaryCase& problem, Random& random)
        : test(problem),
          q(test.dtype, {test.batch, test.length, test.heads, test.head_dim}, test.layout),
          k(test.dtype, {test.batch, test.length, test.kv_heads, test.head_dim}, test.layout),
          q_out(q),
          k_out(k),
          cos(DType::fp32, {rows, test.rotary_dim / 2}, {{}, {0, test.table_padding}}),
          sin(cos) {
        q.fill_normal(random);
        k.fill_normal(random);
        if (test.in_place) {
            q_out = q;
            k_out = k;
        }
        fill_tables(random);
        if (test.positions != Positions::none) positions = make_positions(test, rows, random);
    }

    void fill_tables(Random& random) {
        for (std::int64_t i = 0; i < cos.elements(); ++i) {
            const double angle = random.uniform(-10.0, 10.0);
            cos.set(i, std::cos(angle));
            sin.set(i, std::sin(angle));
        }
    }

    void run_reference() {
        reference::Rotary call;
        call.q = test.in_place ? q_out.view() : q.view();
        call.q_out = q_out.view();
        if (test.kv_heads > 0) {
            call.k = test.in_place ? k_out.view() : k.view();
            call.k_out = k_out.view();
        }
        call.cos = cos.view();
        call.sin = sin.view();
        if (positions) call.positions = positions->view();
        call.style = test.style == RotaryStyle::interleaved ? reference::RotaryStyle::interleaved
                                                            : reference::RotaryStyle::half_split;
        reference::rotary(call);
    }

    static constexpr std::int64_t rows = 40;
    RotaryCase test;
    HostTensor q;
    HostTensor k;
    HostTensor q_out;
    HostTensor k_out;
    HostTensor cos;
    HostTensor sin;
    std::optional<HostTensor> positions;
};

Tolerance rotary_tolerance(DType dtype) {
    return dtype == DType::fp32 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-2, 1e-2};
}

void check_result(const DeviceTensor& device, const HostTensor& expected) {
    const HostTensor actual = device.download();
    CHECK(actual.surroundings_intact());
    const Comparison compared = compare(actual, expected, rotary_tolerance(expected.dtype()));
    CHECK_MESSAGE(compared.within, compared.text);
    CHECK_MESSAGE(compared.mean_absolute < 1e-3, compared.text);
}

std::string text_of(const RotaryCase& test) {
    return std::string(name_of(test.dtype)) +
           (test.style == RotaryStyle::interleaved ? " interleaved" : " half_split") + ", " +
           std::to_string(test.batch) + " x " + std::to_string(test.length) + ", heads " +
           std::to_string(test.heads) + "/" + std::to_string(test.kv_heads) + ", head_dim " +
           std::to_string(test.head_dim) + ", rotary_dim " + std::to_string(test.rotary_dim) +
           ", positions " + std::to_string(static_cast<int>(test.positions)) +
           (test.in_place ? ", in place" : "");
}

void run_case(const RotaryCase& test, Random& random) {
    INFO(text_of(test), " ", random.text());
    RotaryProblem problem(test, random);
    const DeviceTensor q(problem.q);
    const DeviceTensor k(problem.k);
    const DeviceTensor q_out(problem.q_out);
    const DeviceTensor k_out(problem.k_out);
    const DeviceTensor cos(problem.cos);
    const DeviceTensor sin(problem.sin);
    std::optional<DeviceTensor> positions;
    if (problem.positions) positions.emplace(*problem.positions);

    RotaryArgs args;
    args.q = test.in_place ? q_out.view() : q.view();
    args.q_out = q_out.view();
    if (test.kv_heads > 0) {
        args.k = test.in_place ? k_out.view() : k.view();
        args.k_out = k_out.view();
    }
    args.cos = cos.view();
    args.sin = sin.view();
    if (positions) args.positions = positions->view();
    args.style = test.style;
    const Scope scope("rotary_emb");
    rotary_emb(args);
    CHECK(last_run().starts_with("rotary_emb<"));

    problem.run_reference();
    check_result(q_out, problem.q_out);
    if (test.kv_heads > 0) check_result(k_out, problem.k_out);
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
