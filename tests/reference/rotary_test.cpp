#include "operations/rotary/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "jitney/error.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"

using namespace jitney;
using namespace jitney::tests;
using reference::RotaryStyle;

namespace {

constexpr Tolerance kExact{0.0, 0.0};

struct Tables {
    HostTensor cos;
    HostTensor sin;

    // The angles of the usual base of 10000.
    Tables(std::int64_t positions, std::int64_t half)
        : cos(DType::fp32, {positions, half}, {{}, {0, 3}}),
          sin(DType::fp32, {positions, half}, {{}, {0, 3}}) {
        const auto angle = [&](std::int64_t i) {
            const double exponent = static_cast<double>(i % half) / static_cast<double>(half);
            return static_cast<double>(i / half) * std::pow(10000.0, -exponent);
        };
        cos.fill([&](std::int64_t i) { return std::cos(angle(i)); });
        sin.fill([&](std::int64_t i) { return std::sin(angle(i)); });
    }
};

reference::Rotary call_of(HostTensor& x, HostTensor& out, Tables& tables, RotaryStyle style) {
    reference::Rotary call;
    call.q = x.view();
    call.q_out = out.view();
    call.cos = tables.cos.view();
    call.sin = tables.sin.view();
    call.style = style;
    return call;
}

constexpr RotaryStyle kStyles[] = {RotaryStyle::interleaved, RotaryStyle::half_split};

}  // namespace

TEST_CASE("a quarter turn takes (a, b) to (-b, a), in the pairs of each style") {
    HostTensor x(DType::fp32, {1, 1, 1, 6});
    HostTensor out(DType::fp32, {1, 1, 1, 6});
    Tables tables(1, 2);
    x.fill([](std::int64_t i) { return static_cast<double>(i + 1); });
    tables.cos.fill([](std::int64_t) { return 0.0; });
    tables.sin.fill([](std::int64_t) { return 1.0; });
    const auto turned = [&](RotaryStyle style) {
        reference::rotary(call_of(x, out, tables, style));
        std::vector<double> values;
        for (std::int64_t i = 0; i < 6; ++i)
            values.push_back(out.get(i));
        return values;
    };
    // The last two are beyond rotary_dim.
    CHECK(turned(RotaryStyle::interleaved) == std::vector<double>{-2, 1, -4, 3, 5, 6});
    CHECK(turned(RotaryStyle::half_split) == std::vector<double>{-3, -4, 1, 2, 5, 6});
}

TEST_CASE("position 0 changes nothing") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
        HostTensor x(dtype, {2, 1, 3, 16});
        HostTensor out(dtype, {2, 1, 3, 16});
        Tables tables(4, 8);
        x.fill_normal(random);
        for (const RotaryStyle style : kStyles) {
            reference::rotary(call_of(x, out, tables, style));
            JITNEY_CHECK_CLOSE(out, x, kExact);
        }
    }
}

TEST_CASE("a turn keeps the norm, and the opposite turn takes it back") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const RotaryStyle style : kStyles) {
        HostTensor x(DType::fp32, {2, 50, 3, 20}, kBhld);
        HostTensor out(DType::fp32, {2, 50, 3, 20}, {{}, {0, 1, 2, 3}});
        HostTensor back(DType::fp32, {2, 50, 3, 20});
        Tables tables(50, 10);
        x.fill_normal(random);
        reference::rotary(call_of(x, out, tables, style));
        CHECK(out.surroundings_intact());
        int changed = 0;
        for (std::int64_t row = 0; row < 2 * 50 * 3; ++row) {
            double before = 0.0;
            double after = 0.0;
            for (std::int64_t d = 0; d < 20; ++d) {
                before += x.get(row * 20 + d) * x.get(row * 20 + d);
                after += out.get(row * 20 + d) * out.get(row * 20 + d);
                if (x.get(row * 20 + d) != out.get(row * 20 + d)) ++changed;
            }
            CHECK(after == doctest::Approx(before).epsilon(1e-6));
        }
        CHECK(changed > 2 * 49 * 3 * 19);

        tables.sin.fill([&](std::int64_t i) { return -tables.sin.get(i); });
        reference::rotary(call_of(out, back, tables, style));
        JITNEY_CHECK_CLOSE(back, x, (Tolerance{1e-6, 1e-6}));
    }
}

TEST_CASE("scores of turned q and k depend on the distance of their positions only") {
    Random random = Random::fresh();
    INFO(random.text());
    HostTensor x(DType::fp32, {1, 2, 1, 16});
    HostTensor out(DType::fp32, {1, 2, 1, 16});
    HostTensor positions(DType::int64, {2});
    Tables tables(100, 8);
    x.fill_normal(random);
    const auto score_at = [&](std::int64_t first, std::int64_t second) {
        positions.set(0, static_cast<double>(first));
        positions.set(1, static_cast<double>(second));
        reference::Rotary call = call_of(x, out, tables, RotaryStyle::half_split);
        call.positions = positions.view();
        reference::rotary(call);
        double dot = 0.0;
        for (std::int64_t d = 0; d < 16; ++d)
            dot += out.get(d) * out.get(16 + d);
        return dot;
    };
    CHECK(score_at(90, 80) == doctest::Approx(score_at(10, 0)).epsilon(1e-5));
    CHECK(score_at(17, 17) == doctest::Approx(score_at(0, 0)).epsilon(1e-5));
}

TEST_CASE("positions choose the rows of cos and sin, in every form") {
    Random random = Random::fresh();
    INFO(random.text());
    HostTensor x(DType::bf16, {2, 5, 2, 8});
    HostTensor expected(DType::bf16, {2, 5, 2, 8});
    HostTensor out(DType::bf16, {2, 5, 2, 8});
    Tables tables(64, 4);
    x.fill_normal(random);
    const auto position = [](std::int64_t b, std::int64_t l) { return (13 * l + 29 * b + 7) % 64; };

    for (const DType dtype : {DType::int32, DType::int64}) {
        for (const int form : {0, 1, 2}) {  // [length], [1, length], [batch, length]
            CAPTURE(form);
            const auto row = [&](std::int64_t b, std::int64_t l) {
                return position(form == 2 ? b : 0, l);
            };
            // By the definition, element by element.
            expected.fill([&](std::int64_t i) {
                const std::int64_t d = i % 8;
                const std::int64_t b = i / 80;
                const std::int64_t l = i / 16 % 5;
                const double c = tables.cos.at({row(b, l), d / 2});
                const double s = tables.sin.at({row(b, l), d / 2});
                return d % 2 == 0 ? x.get(i) * c - x.get(i + 1) * s
                                  : x.get(i) * c + x.get(i - 1) * s;
            });
            HostTensor positions = form == 0   ? HostTensor(dtype, {5})
                                   : form == 1 ? HostTensor(dtype, {1, 5})
                                               : HostTensor(dtype, {2, 5}, {{}, {0, 2}});
            positions.fill(
                [&](std::int64_t i) { return static_cast<double>(position(i / 5, i % 5)); });
            reference::Rotary call = call_of(x, out, tables, RotaryStyle::interleaved);
            call.positions = positions.view();
            reference::rotary(call);
            JITNEY_CHECK_CLOSE(out, expected, kExact);
        }
    }
}

TEST_CASE("in place gives what a copy gives") {
    Random random = Random::fresh();
    INFO(random.text());
    for (const RotaryStyle style : kStyles) {
        HostTensor x(DType::fp16, {2, 9, 3, 12}, kBhld);
        HostTensor out(DType::fp16, {2, 9, 3, 12});
        Tables tables(9, 5);
        x.fill_normal(random);
        reference::rotary(call_of(x, out, tables, style));
        reference::rotary(call_of(x, x, tables, style));
        JITNEY_CHECK_CLOSE(x, out, kExact);
        CHECK(x.surroundings_intact());
    }
}

TEST_CASE("q and k are turned by one call, with heads and dimensions of their own") {
    Random random = Random::fresh();
    INFO(random.text());
    HostTensor q(DType::bf16, {2, 4, 6, 16});
    HostTensor k(DType::fp32, {2, 4, 2, 12});
    HostTensor q_out(DType::bf16, {2, 4, 6, 16});
    HostTensor k_out(DType::fp32, {2, 4, 2, 12});
    HostTensor q_apart(DType::bf16, {2, 4, 6, 16});
    HostTensor k_apart(DType::fp32, {2, 4, 2, 12});
    Tables tables(4, 6);
    q.fill_normal(random);
    k.fill_normal(random);
    reference::Rotary call = call_of(q, q_out, tables, RotaryStyle::half_split);
    call.k = k.view();
    call.k_out = k_out.view();
    reference::rotary(call);
    reference::rotary(call_of(q, q_apart, tables, RotaryStyle::half_split));
    reference::rotary(call_of(k, k_apart, tables, RotaryStyle::half_split));
    JITNEY_CHECK_CLOSE(q_out, q_apart, kExact);
    JITNEY_CHECK_CLOSE(k_out, k_apart, kExact);
}

TEST_CASE("the result is rounded once, from fp64") {
    // 1 * cos - 1 * sin = 1 + 2^-8 + 2^-30: rounded to fp32 first, it would be a tie in bf16.
    HostTensor x(DType::bf16, {1, 1, 1, 2});
    HostTensor out(DType::bf16, {1, 1, 1, 2});
    Tables tables(1, 1);
    x.fill([](std::int64_t) { return 1.0; });
    tables.cos.set(0, 1.0 + 0x1p-8);
    tables.sin.set(0, -0x1p-30);
    reference::rotary(call_of(x, out, tables, RotaryStyle::interleaved));
    CHECK(out.get(0) == 1.0 + 0x1p-7);
}

TEST_CASE("elements beyond rotary_dim are copied bit for bit, NaN too") {
    HostTensor x(DType::fp32, {1, 2, 1, 4});
    HostTensor out(DType::fp32, {1, 2, 1, 4});
    Tables tables(2, 1);
    x.fill([](std::int64_t) { return 1.0; });
    auto* data = static_cast<std::uint32_t*>(x.view().data);
    data[2] = 0x7FA12345;  // a signalling NaN
    data[7] = 0xFFC54321;
    reference::rotary(call_of(x, out, tables, RotaryStyle::interleaved));
    const auto* copied = static_cast<const std::uint32_t*>(out.view().data);
    CHECK(copied[2] == 0x7FA12345);
    CHECK(copied[7] == 0xFFC54321);
}

TEST_CASE("empty tensors are legal") {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{0, 3, 2, 4}, {2, 0, 2, 4}, {2, 3, 0, 4}}) {
        HostTensor x(DType::bf16, shape);
        HostTensor out(DType::bf16, shape);
        Tables tables(3, 2);
        CHECK_NOTHROW(reference::rotary(call_of(x, out, tables, RotaryStyle::interleaved)));
    }
}

TEST_CASE("a position without a row is refused before anything is written") {
    HostTensor x(DType::fp32, {1, 3, 1, 2});
    HostTensor out(DType::fp32, {1, 3, 1, 2});
    HostTensor positions(DType::int32, {3});
    Tables tables(4, 1);
    x.fill([](std::int64_t) { return 1.0; });
    for (const double bad : {4.0, -1.0}) {
        positions.fill([&](std::int64_t i) { return i == 2 ? bad : 0.0; });
        reference::Rotary call = call_of(x, out, tables, RotaryStyle::interleaved);
        call.positions = positions.view();
        CHECK_THROWS_AS(reference::rotary(call), Error);
        CHECK(std::isnan(out.get(0)));
    }
    // One that 32 bits would cut to a row of the tables.
    HostTensor wide(DType::int64, {3});
    for (const double bad : {4294967297.0, -4294967295.0}) {
        wide.fill([&](std::int64_t i) { return i == 2 ? bad : 0.0; });
        reference::Rotary call = call_of(x, out, tables, RotaryStyle::interleaved);
        call.positions = wide.view();
        CHECK_THROWS_AS(reference::rotary(call), Error);
        CHECK(std::isnan(out.get(0)));
    }
    // Without positions, the length is what has to fit.
    Tables few(2, 1);
    CHECK_THROWS_WITH_AS(reference::rotary(call_of(x, out, few, RotaryStyle::interleaved)),
                         "without positions, token 2 stands at 2, and cos and sin have 2 rows, "
                         "numbered from 0: make the tables longer, or correct the position",
                         Error);
    positions.fill([](std::int64_t i) { return i == 1 ? -7.0 : 0.0; });
    reference::Rotary named = call_of(x, out, tables, RotaryStyle::interleaved);
    named.positions = positions.view();
    CHECK_THROWS_WITH_AS(reference::rotary(named),
                         "positions[1] is -7, and cos and sin have 4 rows, numbered from 0: make "
                         "the tables longer, or correct the position",
                         Error);
}

TEST_CASE("rotary arguments that contradict each other are refused") {
    HostTensor x(DType::fp32, {2, 3, 1, 4});
    HostTensor out(DType::fp32, {2, 3, 1, 4});
    HostTensor positions(DType::int32, {2, 3});
    Tables tables(3, 2);
    positions.fill([](std::int64_t) { return 0.0; });
    const auto refuses = [&](const char* part, auto spoil) {
        reference::Rotary call = call_of(x, out, tables, RotaryStyle::interleaved);
        call.k = x.view();
        call.k_out = out.view();
        call.positions = positions.view();
        spoil(call);
        try {
            reference::rotary(call);
            FAIL_CHECK("accepted: ", part);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
        }
    };
    refuses("rotary_dim of 6", [](auto& call) { call.cos.shape[1] = call.sin.shape[1] = 3; });
    refuses("sin has the shape [3, 1]", [](auto& call) { call.sin.shape[1] = 1; });
    refuses("cos must be fp32", [](auto& call) { call.cos.dtype = DType::fp16; });
    refuses("q_out must have the format", [](auto& call) { call.q_out.dtype = DType::bf16; });
    refuses("q_out has the shape", [](auto& call) { call.q_out.shape[1] = 2; });
    refuses("both or neither", [](auto& call) { call.k_out.reset(); });
    refuses("k has the shape", [](auto& call) { call.k->shape[1] = call.k_out->shape[1] = 2; });
    refuses("positions has the shape [2, 2]", [](auto& call) { call.positions->shape[1] = 2; });
    refuses("positions must be int32", [](auto& call) { call.positions->dtype = DType::fp32; });
}
