// The helpers of the tests are tested too: a comparison that can't fail would hide everything.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/append_problem.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/problems.hpp"

using namespace jitney;
using namespace jitney::tests;

TEST_CASE("a comparison fails where an element is beyond its tolerance, and names it") {
    HostTensor expected(DType::fp32, {2, 3}, {});
    HostTensor actual(DType::fp32, {2, 3}, {{1, 0}, {1, 1}});
    expected.fill([](std::int64_t i) { return static_cast<double>(i); });
    actual.fill([](std::int64_t i) { return static_cast<double>(i); });
    CHECK(compare(actual, expected, {}).within);

    actual.put({1, 1}, 4.5);
    const Comparison comparison = compare(actual, expected, {0.1, 0.05});
    CHECK_FALSE(comparison.within);
    CHECK(comparison.failures == 1);
    CHECK(comparison.worst == 4);
    CHECK(comparison.max_absolute == doctest::Approx(0.5));
    CHECK(comparison.max_relative == doctest::Approx(0.125));
    CHECK(comparison.mean_absolute == doctest::Approx(0.5 / 6));
    CHECK(comparison.text.find("[1, 1]: 4.5 instead of 4") != std::string::npos);
    CHECK(compare(actual, expected, {0.1, 0.1}).within);
    CHECK(compare(actual, expected, {0.5, 0.0}).within);
}

TEST_CASE("NaN never passes, infinities only where they are equal") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto passes = [](double a, double e) {
        HostTensor actual(DType::fp32, {1});
        HostTensor expected(DType::fp32, {1});
        actual.set(0, a);
        expected.set(0, e);
        return compare(actual, expected, {1e30, 1.0}).within;
    };
    CHECK_FALSE(passes(nan, 1.0));
    CHECK_FALSE(passes(1.0, nan));
    CHECK_FALSE(passes(nan, nan));
    CHECK_FALSE(passes(inf, 1.0));
    CHECK_FALSE(passes(1.0, -inf));
    CHECK_FALSE(passes(inf, -inf));
    CHECK(passes(-inf, -inf));
}

TEST_CASE("a cache is the same with what is no number in the same places alone") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    // The second element is within the tolerance, but not equal: bits alone do not decide.
    const auto same = [](double a, double b) {
        HostTensor actual(DType::fp32, {2});
        HostTensor expected(DType::fp32, {2});
        actual.set(0, a);
        expected.set(0, b);
        actual.set(1, 1.0);
        expected.set(1, 1.01);
        return is_same_cache(actual, expected, {0.05, 0.05});
    };
    CHECK(same(1.0, 1.02));
    CHECK(same(inf, inf));
    CHECK(same(-inf, -inf));
    CHECK(same(nan, nan));
    CHECK_FALSE(same(1.0, 1.2));
    CHECK_FALSE(same(inf, -inf));
    CHECK_FALSE(same(inf, nan));
    CHECK_FALSE(same(nan, inf));
    CHECK_FALSE(same(1.0, nan));
    CHECK_FALSE(same(nan, 1.0));
    CHECK_FALSE(same(inf, 1.0));
    CHECK_FALSE(same(1.0, inf));
}

TEST_CASE("fresh tensors are poison, and a write between the elements is noticed") {
    for (const DType dtype :
         {DType::fp32, DType::fp16, DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2}) {
        HostTensor tensor(dtype, {2, 2}, {{}, {0, 1}});
        CHECK(std::isnan(tensor.get(3)));
        tensor.fill([](std::int64_t i) { return static_cast<double>(i); });
        CHECK(tensor.get(3) == 3.0);
        CHECK(tensor.surroundings_intact());
        auto* data = static_cast<std::byte*>(tensor.view().data);
        data[2 * size_of(dtype)] = std::byte{0};  // the padding of row 0
        CHECK_FALSE(tensor.surroundings_intact());
    }
}

TEST_CASE("a view elsewhere keeps shape, strides and offset") {
    HostTensor tensor(DType::bf16, {2, 3, 4, 8}, kBhld);
    const Tensor here = tensor.view();
    CHECK(here.strides[0] == 96);
    CHECK(here.strides[1] == 8);
    CHECK(here.strides[2] == 24);
    CHECK(here.strides[3] == 1);
    std::vector<std::byte> copy(tensor.storage().size());
    const Tensor there = tensor.view_at(copy.data(), {DeviceType::cuda, 1});
    CHECK(there.device == Device{DeviceType::cuda, 1});
    CHECK(static_cast<std::byte*>(there.data) - copy.data() ==
          static_cast<std::byte*>(here.data) - tensor.storage().data());
    CHECK(there.strides == here.strides);
}

TEST_CASE("a seed reproduces its numbers") {
    Random first(42);
    Random second(42);
    Random other(43);
    int equal = 0;
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t bits = first.bits();
        CHECK(bits == second.bits());
        if (bits == other.bits()) ++equal;
    }
    CHECK(equal == 0);
    CHECK(first.text() == "JITNEY_TEST_SEED=42");
    double sum = 0.0;
    double squares = 0.0;
    for (int i = 0; i < 10000; ++i) {
        const double value = first.normal();
        sum += value;
        squares += value * value;
        const std::int64_t integer = first.integer(-2, 2);
        CHECK((integer >= -2 && integer <= 2));
    }
    CHECK(std::abs(sum / 10000) < 0.05);
    CHECK(squares / 10000 == doctest::Approx(1.0).epsilon(0.05));
}
