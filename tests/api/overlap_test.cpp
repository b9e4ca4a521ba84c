// Which views share memory: against a list of every byte, and for layouts that engines use.
#include "operations/overlap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/random.hpp"

namespace jitney::tests {
namespace {

using checks::meet;
using checks::shared;
using checks::shared_within;
using checks::Sharing;
using checks::span_of;

constexpr std::uintptr_t kBase = 1 << 20;

Tensor at(std::uintptr_t offset, DType dtype, std::vector<std::int64_t> shape,
          std::vector<std::int64_t> strides) {
    return Tensor::strided(reinterpret_cast<void*>(kBase + offset), dtype, shape, strides,
                           {DeviceType::cpu, 0});
}

// The address of each element.
std::vector<std::int64_t> addresses(const Tensor& tensor) {
    std::vector<std::int64_t> all = {
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data))};
    for (std::size_t dim = 0; dim < static_cast<std::size_t>(tensor.ndim); ++dim) {
        std::vector<std::int64_t> next;
        for (const std::int64_t address : all) {
            for (std::int64_t i = 0; i < tensor.shape[dim]; ++i)
                next.push_back(address + i * tensor.strides[dim] * size_of(tensor.dtype));
        }
        all = next;
    }
    std::ranges::sort(all);
    return all;
}

bool share_a_byte(const Tensor& a, const Tensor& b) {
    for (const std::int64_t one : addresses(a)) {
        for (const std::int64_t other : addresses(b)) {
            if (one < other + size_of(b.dtype) && other < one + size_of(a.dtype)) return true;
        }
    }
    return false;
}

bool shares_within(const Tensor& tensor) {
    const std::vector<std::int64_t> all = addresses(tensor);
    return std::ranges::adjacent_find(all) != all.end();
}

Tensor random_view(Random& random) {
    static constexpr DType kTypes[] = {DType::bf16, DType::fp32, DType::boolean, DType::int64};
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    for (std::int64_t dims = random.integer(1, 4); dims > 0; --dims) {
        shape.push_back(random.integer(random.chance(0.05) ? 0 : 1, 4));
        strides.push_back(random.chance(0.3) ? 1 : random.integer(-9, 24));
    }
    return at(static_cast<std::uintptr_t>(8 * random.integer(0, 24)), kTypes[random.integer(0, 3)],
              shape, strides);
}

}  // namespace

TEST_CASE("views that share a byte, and views whose elements coincide, are told exactly") {
    Random random = Random::fresh();
    INFO(random.text());
    int sharing = 0;
    int apart_though_near = 0;
    for (int i = 0; i < 4000; ++i) {
        const Tensor a = random_view(random);
        const Tensor b = random_view(random);
        const bool expected = share_a_byte(a, b);
        REQUIRE(shared(a, b) == (expected ? Sharing::some : Sharing::none));
        REQUIRE(shared(b, a) == (expected ? Sharing::some : Sharing::none));
        const bool near = meet(span_of(a), span_of(b));
        REQUIRE((near || !expected));
        sharing += expected ? 1 : 0;
        apart_though_near += near && !expected ? 1 : 0;

        const bool coincide = shares_within(a);
        const checks::SelfSharing found = shared_within(a);
        REQUIRE(found.kind == (coincide ? Sharing::some : Sharing::none));
        if (coincide) {
            REQUIRE(a.shape[static_cast<std::size_t>(found.dim)] > 1);
        }
    }
    CHECK(sharing > 100);
    CHECK(apart_though_near > 100);
}

TEST_CASE("layouts of engines lie apart, or do not") {
    const std::int64_t row = 8 * 128;
    // K and V of one cache: beside each other in a page, and in a token.
    for (const auto& [outer, inner] :
         {std::pair{2 * 16 * row, 16 * row}, std::pair{16 * 2 * row, row}}) {
        const std::int64_t token = inner == row ? 2 * row : row;
        const Tensor k = at(0, DType::bf16, {1000, 16, 8, 128}, {outer, token, 128, 1});
        Tensor v = k;
        v.data = static_cast<std::byte*>(k.data) + 2 * inner;
        CHECK(meet(span_of(k), span_of(v)));
        CHECK(shared(k, v) == Sharing::none);
        v.data = static_cast<std::byte*>(k.data) + 2 * (inner - 1);
        CHECK(shared(k, v) == Sharing::some);
        v.data = static_cast<std::byte*>(k.data) + 2 * (outer + 3 * token + 127);
        CHECK(shared(k, v) == Sharing::some);
        CHECK(shared_within(k).kind == Sharing::none);
    }
    // q, k and v of one product, and a result that lies where q does not.
    const std::int64_t packed = (32 + 8 + 8) * 128;
    const Tensor q = at(0, DType::bf16, {4096, 32, 128}, {packed, 128, 1});
    const Tensor k = at(2 * 32 * 128, DType::bf16, {4096, 8, 128}, {packed, 128, 1});
    CHECK(shared(q, k) == Sharing::none);
    CHECK(shared(at(2, DType::bf16, {4096, 32, 128}, {packed, 128, 1}), k) == Sharing::some);
    // The heads outside, walked from the end, and of other sizes.
    CHECK(shared_within(at(0, DType::bf16, {2, 3, 4, 8}, {96, 8, 24, 1})).kind == Sharing::none);
    CHECK(shared_within(at(4096, DType::bf16, {2, 3, 4, 8}, {-96, 8, -24, 1})).kind ==
          Sharing::none);
    CHECK(shared_within(at(0, DType::bf16, {2, 3}, {3, 2})).kind == Sharing::none);
    CHECK(shared_within(at(0, DType::bf16, {3, 4}, {3, 2})).kind == Sharing::some);
    CHECK(shared_within(at(0, DType::bf16, {2, 3, 4, 8}, {0, 4, 4, 1})).kind == Sharing::some);
    CHECK(shared_within(at(0, DType::bf16, {1, 3, 1, 8}, {0, 8, 0, 1})).kind == Sharing::none);
    // Empty ones, whatever their strides say.
    const std::int64_t far = std::int64_t{1} << 62;
    CHECK(shared(at(0, DType::bf16, {5, 0}, {far, far}), q) == Sharing::none);
    CHECK(shared_within(at(0, DType::bf16, {5, 0}, {far, 0})).kind == Sharing::none);
}

TEST_CASE("strides that nobody has are given up, and not searched for long") {
    const std::int64_t n = 1 << 30;
    const Tensor a =
        at(0, DType::boolean, {n, n, n, n, n}, {1000003, 999983, 999979, 999961, 999959});
    CHECK(shared_within(a).kind != Sharing::none);
    Tensor b = at(0, DType::int64, {n, n, n}, {6, 10, 14});
    Tensor c = at(8, DType::int64, {n, n, n}, {22, 26, 34});
    CHECK(shared(b, c) == Sharing::none);  // even and odd
    b = at(0, DType::int64, {1 << 20, 1 << 20}, {(1 << 20) + 1, 1 << 20});
    CHECK(shared_within(b).kind != Sharing::some);
}

}  // namespace jitney::tests
