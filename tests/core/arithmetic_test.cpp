#include "core/arithmetic.hpp"

#include <doctest/doctest.h>

#include "core/steps.hpp"

namespace jitney {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("arithmetic stays within 64 bits") {
    CHECK(magnitude(-5) == 5);
    CHECK(magnitude(kMost) == kMost);
    CHECK(magnitude(-kMost) == kMost);
    CHECK(magnitude(-kMost - 1) == kMost);
    CHECK(product(3, 4) == 12);
    CHECK(product(kMost, 0) == 0);
    CHECK(product(0, kMost) == 0);
    CHECK(product(kMost, 1) == kMost);
    CHECK(product(kMost / 2, 3) == kMost);
    CHECK(product(std::int64_t{1} << 31, std::int64_t{1} << 31) == std::int64_t{1} << 62);
    CHECK(ceil_div(kMost, 2) == kMost / 2 + 1);
    CHECK(ceil_div(6, 3) == 2);
}

TEST_CASE("a stride counts where its dimension has neighbours") {
    Tensor tensor;
    tensor.ndim = 3;
    tensor.shape = {1, 4, 2};
    tensor.strides = {-kMost - 1, 2, 1};
    CHECK(step_of(tensor, 0) == 0);
    CHECK(step_of(tensor, 1) == 2);
    CHECK(with_steps(tensor).strides[0] == 0);
    CHECK(with_steps(tensor).strides[1] == 2);
    CHECK_FALSE(is_empty(tensor));
    tensor.shape[2] = 0;
    CHECK(is_empty(tensor));
    CHECK(step_of(tensor, 1) == 0);
}

}  // namespace jitney
