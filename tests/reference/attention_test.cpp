// The promises of attention, one by one, on cases that can be worked out by hand.
#include "reference/attention.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "jitney/error.hpp"
#include "reference/rows.hpp"
#include "tests/reference/threads.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/problems.hpp"

using namespace jitney;
using namespace jitney::tests;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

AttentionShape small(std::int64_t q_len, std::int64_t kv_len) {
    AttentionShape shape;
    shape.q_len = q_len;
    shape.kv_len = kv_len;
    shape.dtype = DType::fp32;
    return shape;
}

// q = 0: every visible key weighs the same, so a row is the mean of the values that it sees. The
// values are 1, 2, 3, ... along the keys.
AttentionProblem counting_problem(const AttentionShape& shape) {
    Random random(1);
    AttentionProblem problem(shape, random);
    problem.q.fill([](std::int64_t) { return 0.0; });
    const std::int64_t row = shape.kv_heads * shape.head_dim;
    problem.v.fill([&](std::int64_t i) { return static_cast<double>(i / row % shape.kv_len + 1); });
    return problem;
}

}  // namespace

TEST_CASE("weights of 1/3 and 2/3") {
    Random random(1);
    AttentionShape shape = small(1, 2);
    shape.scale = 1.0;
    AttentionProblem problem(shape, random);
    problem.q.set(0, 1.0);
    problem.k.set(0, 0.0);
    problem.k.set(1, std::log(2.0));
    problem.v.set(0, 3.0);
    problem.v.set(1, 6.0);
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == doctest::Approx(5.0).epsilon(1e-6));
    CHECK(problem.lse.get(0) == doctest::Approx(std::log(3.0)).epsilon(1e-6));
}

TEST_CASE("the scale is 1 / sqrt(head_dim) unless given") {
    Random random(1);
    AttentionShape shape = small(1, 1);
    shape.head_dim = 16;
    AttentionProblem problem(shape, random);
    problem.q.fill([](std::int64_t) { return 1.0; });
    problem.k.fill([](std::int64_t) { return 1.0; });
    reference::attention(problem.reference_call());
    CHECK(problem.lse.get(0) == 4.0);
    problem.shape.scale = 0.0;
    reference::attention(problem.reference_call());
    CHECK(problem.lse.get(0) == 0.0);
}

TEST_CASE("the LSE is the natural logarithm") {
    AttentionProblem problem = counting_problem(small(1, 100));
    reference::attention(problem.reference_call());
    CHECK(problem.lse.get(0) == doctest::Approx(std::log(100.0)).epsilon(1e-6));
    CHECK(problem.out.get(0) == doctest::Approx(50.5).epsilon(1e-6));
}

TEST_CASE("the causal rule is aligned at the bottom right") {
    SUBCASE("fewer queries than keys") {
        AttentionShape shape = small(2, 5);
        shape.causal = true;
        AttentionProblem problem = counting_problem(shape);
        reference::attention(problem.reference_call());
        CHECK(problem.out.get(0) == doctest::Approx(2.5));  // keys 0 to 3
        CHECK(problem.out.get(1) == doctest::Approx(3.0));  // keys 0 to 4
    }
    SUBCASE("more queries than keys: the first ones see nothing") {
        AttentionShape shape = small(5, 2);
        shape.causal = true;
        AttentionProblem problem = counting_problem(shape);
        reference::attention(problem.reference_call());
        for (const std::int64_t row : {0, 1, 2}) {
            CHECK(problem.out.get(row) == 0.0);
            CHECK(problem.lse.get(row) == -kInf);
        }
        CHECK(problem.out.get(3) == 1.0);
        CHECK(problem.out.get(4) == doctest::Approx(1.5));
    }
}

TEST_CASE("a row that the mask hides from every key is 0, with LSE -inf") {
    AttentionShape shape = small(3, 70);
    shape.mask = MaskKind::queries;
    AttentionProblem problem = counting_problem(shape);
    problem.mask->fill([](std::int64_t i) { return i / 70 == 1 ? 0.0 : 1.0; });
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == doctest::Approx(35.5));
    CHECK(problem.out.get(1) == 0.0);
    CHECK_FALSE(std::signbit(problem.out.get(1)));
    CHECK(problem.lse.get(1) == -kInf);
    CHECK(problem.out.get(2) == doctest::Approx(35.5));
}

TEST_CASE("a mask whose first visible key comes after many hidden blocks") {
    AttentionShape shape = small(1, 300);
    shape.mask = MaskKind::keys;
    AttentionProblem problem = counting_problem(shape);
    problem.mask->fill([](std::int64_t i) { return i == 299 ? 1.0 : 0.0; });
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == 300.0);
    CHECK(problem.lse.get(0) == 0.0);
}

TEST_CASE("very low scores are scores, not masked") {
    for (const double score : {-6e4, -1e6, -1e30}) {
        Random random(1);
        AttentionShape shape = small(1, 66);
        shape.scale = 1.0;
        AttentionProblem problem(shape, random);
        problem.q.set(0, 1.0);
        problem.k.fill([&](std::int64_t) { return score; });
        problem.v.fill([](std::int64_t i) { return static_cast<double>(i + 1); });
        reference::attention(problem.reference_call());
        CHECK(problem.out.get(0) == doctest::Approx(33.5).epsilon(1e-6));
        CHECK(problem.lse.get(0) == doctest::Approx(score + std::log(66.0)).epsilon(1e-6));
    }
}

TEST_CASE("very high scores do not overflow") {
    Random random(1);
    AttentionShape shape = small(1, 130);
    shape.scale = 1.0;
    AttentionProblem problem(shape, random);
    problem.q.set(0, 1.0);
    problem.k.fill([](std::int64_t i) { return i == 129 ? 1e30 : -1e30; });
    problem.v.fill([](std::int64_t i) { return static_cast<double>(i); });
    reference::attention(problem.reference_call());
    CHECK(problem.out.get(0) == 129.0);
}

TEST_CASE("no key at all: 0 and LSE -inf") {
    for (const bool causal : {false, true}) {
        Random random(1);
        AttentionShape shape = small(3, 0);
        shape.batch = 2;
        shape.head_dim = 4;
        shape.causal = causal;
        AttentionProblem problem(shape, random);
        reference::Attention call = problem.reference_call();
        call.k.data = nullptr;
        call.v.data = nullptr;
        reference::attention(call);
        for (std::int64_t i = 0; i < problem.out.elements(); ++i)
            CHECK(problem.out.get(i) == 0.0);
        for (std::int64_t i = 0; i < problem.lse.elements(); ++i)
            CHECK(problem.lse.get(i) == -kInf);
    }
}

TEST_CASE("no query, no batch or no head: nothing is done") {
    Random random(1);
    AttentionShape no_query = small(0, 7);
    AttentionShape no_batch = small(3, 7);
    no_batch.batch = 0;
    AttentionShape no_head = small(3, 7);
    no_head.q_heads = 0;
    AttentionShape no_kv_head = no_head;
    no_kv_head.kv_heads = 0;
    for (const AttentionShape& shape : {no_query, no_batch, no_head, no_kv_head}) {
        CAPTURE(shape.text());
        AttentionProblem problem(shape, random);
        CHECK_NOTHROW(reference::attention(problem.reference_call()));
        CHECK(problem.out.surroundings_intact());
    }
}

TEST_CASE("NaN in keys and values that a row does not see never reaches it") {
    AttentionShape shape = small(4, 150);
    shape.head_dim = 8;
    SUBCASE("hidden by the mask") {
        shape.mask = MaskKind::keys;
        AttentionProblem problem = counting_problem(shape);
        problem.mask->fill([](std::int64_t i) { return i % 3 == 0 ? 0.0 : 1.0; });
        for (std::int64_t j = 0; j < 150; j += 3) {
            for (std::int64_t d = 0; d < 8; ++d) {
                problem.k.put({0, j, 0, d}, d % 2 == 0 ? kNan : kInf);
                problem.v.put({0, j, 0, d}, d % 2 == 0 ? kNan : -kInf);
            }
        }
        reference::attention(problem.reference_call());
        for (std::int64_t i = 0; i < problem.out.elements(); ++i) {
            // The mean of 2, 3, 5, 6, 8, 9, ..., 150.
            CHECK(problem.out.get(i) == doctest::Approx(76.0).epsilon(1e-6));
        }
    }
    SUBCASE("in the future") {
        shape.causal = true;
        AttentionProblem problem = counting_problem(shape);
        for (std::int64_t d = 0; d < 8; ++d) {
            problem.k.put({0, 149, 0, d}, kNan);
            problem.v.put({0, 149, 0, d}, kNan);
        }
        reference::attention(problem.reference_call());
        CHECK(problem.out.at({0, 0, 0, 0}) == doctest::Approx(74.0).epsilon(1e-6));
        CHECK(problem.out.at({0, 2, 0, 7}) == doctest::Approx(75.0).epsilon(1e-6));
        CHECK(std::isnan(problem.out.at({0, 3, 0, 0})));
        CHECK(std::isnan(problem.lse.at({0, 0, 3})));
    }
}

TEST_CASE("NaN in a query, a key or a value that is seen stays NaN, in its own rows only") {
    for (const int where : {0, 1, 2}) {
        Random random(1);
        AttentionShape shape = small(2, 140);
        shape.batch = 2;
        shape.head_dim = 4;
        AttentionProblem problem(shape, random);
        if (where == 0) problem.q.put({0, 1, 0, 2}, kNan);
        if (where == 1) problem.k.put({0, 70, 0, 2}, kNan);
        if (where == 2) problem.v.put({0, 70, 0, 2}, kNan);
        reference::attention(problem.reference_call());
        CAPTURE(where);
        CHECK(std::isnan(problem.out.at({0, 1, 0, 2})));
        CHECK(std::isnan(problem.out.at({0, 1, 0, 3})) == (where != 2));
        CHECK(std::isnan(problem.out.at({0, 0, 0, 2})) == (where != 0));
        CHECK(std::isnan(problem.lse.at({0, 0, 1})) == (where != 2));
        for (const std::int64_t i : {0, 1})
            CHECK(std::isfinite(problem.out.at({1, i, 0, 2})));
    }
}

TEST_CASE("q, k and v may be slices of one tensor") {
    Random random = Random::fresh();
    INFO(random.text());
    AttentionShape shape{2, 20, 20, 6, 2, 8, DType::bf16, MaskKind::none, true, {}};
    AttentionProblem apart(shape, random);
    reference::attention(apart.reference_call());

    HostTensor packed(DType::bf16, {2, 20, 10, 8});
    const auto copy = [&](const HostTensor& from, std::int64_t heads, std::int64_t first) {
        for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t l = 0; l < 20; ++l)
                for (std::int64_t h = 0; h < heads; ++h)
                    for (std::int64_t d = 0; d < 8; ++d)
                        packed.put({b, l, first + h, d}, from.at({b, l, h, d}));
    };
    copy(apart.q, 6, 0);
    copy(apart.k, 2, 6);
    copy(apart.v, 2, 8);
    const auto slice = [&](std::int64_t heads, std::int64_t first) {
        Tensor view = packed.view();
        view.data = static_cast<std::byte*>(view.data) + first * 8 * 2;
        view.shape[2] = heads;
        return view;
    };
    AttentionProblem together(shape, random);
    reference::Attention call = together.reference_call();
    call.q = slice(6, 0);
    call.k = slice(2, 6);
    call.v = slice(2, 8);
    reference::attention(call);
    JITNEY_CHECK_CLOSE(together.out, apart.out, (Tolerance{0.0, 0.0}));
    JITNEY_CHECK_CLOSE(together.lse, apart.lse, (Tolerance{0.0, 0.0}));
}

TEST_CASE("strides of 0, of more than 1 inside and below 0 are honoured") {
    Random random = Random::fresh();
    INFO(random.text());
    AttentionShape shape{3, 5, 33, 2, 1, 6, DType::fp32, MaskKind::heads, false, {}};
    AttentionProblem plain(shape, random);
    SUBCASE("one k and v for the whole batch") {
        for (HostTensor* tensor : {&plain.k, &plain.v}) {
            const std::int64_t per_batch = tensor->elements() / 3;
            tensor->fill([&](std::int64_t i) { return tensor->get(i % per_batch); });
        }
        AttentionProblem other = plain;
        reference::attention(plain.reference_call());
        reference::Attention call = other.reference_call();
        call.k.strides[0] = 0;
        call.v.strides[0] = 0;
        reference::attention(call);
        JITNEY_CHECK_CLOSE(other.out, plain.out, (Tolerance{0.0, 0.0}));
    }
    SUBCASE("head_dim is not the innermost") {
        const Layout turned{{3, 0, 1, 2}, {0, 1, 0, 0}};
        AttentionProblem other(shape, random, turned);
        other.q.fill([&](std::int64_t i) { return plain.q.get(i); });
        other.k.fill([&](std::int64_t i) { return plain.k.get(i); });
        other.v.fill([&](std::int64_t i) { return plain.v.get(i); });
        other.mask = plain.mask;
        reference::attention(plain.reference_call());
        reference::attention(other.reference_call());
        JITNEY_CHECK_CLOSE(other.out, plain.out, (Tolerance{0.0, 0.0}));
        CHECK(other.out.surroundings_intact());
    }
    SUBCASE("backwards") {
        // Keys and values in reverse order, read from the last to the first.
        AttentionProblem other = plain;
        for (HostTensor* tensor : {&other.k, &other.v}) {
            const HostTensor& from = tensor == &other.k ? plain.k : plain.v;
            for (std::int64_t b = 0; b < 3; ++b)
                for (std::int64_t j = 0; j < 33; ++j)
                    for (std::int64_t d = 0; d < 6; ++d)
                        tensor->put({b, j, 0, d}, from.at({b, 32 - j, 0, d}));
        }
        reference::attention(plain.reference_call());
        reference::Attention call = other.reference_call();
        for (Tensor* tensor : {&call.k, &call.v}) {
            tensor->data = static_cast<float*>(tensor->data) + 32 * tensor->strides[1];
            tensor->strides[1] = -tensor->strides[1];
        }
        reference::attention(call);
        JITNEY_CHECK_CLOSE(other.out, plain.out, (Tolerance{0.0, 0.0}));
    }
}

TEST_CASE("offsets of more than 2^32 bytes are honoured") {
    constexpr std::int64_t kStride = (std::int64_t{1} << 32) + 64;
    constexpr std::size_t kBytes = static_cast<std::size_t>(kStride) * 2 + 4096;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        MESSAGE("skipped: the system does not lend ", kBytes, " bytes of address space");
        return;
    }
    AttentionShape shape = small(1, 2);
    AttentionProblem problem = counting_problem(shape);
    reference::Attention call = problem.reference_call();
    call.v.data = memory;
    call.v.dtype = DType::bf16;
    call.v.strides[1] = kStride;
    double value = 2.0;
    reference::write_row(reference::row_of(call.v, 0, 3), 1, &value);
    value = 8.0;
    reference::write_row(reference::row_of(call.v, kStride, 3), 1, &value);
    reference::attention(call);
    CHECK(problem.out.get(0) == 5.0);
    munmap(memory, kBytes);
}

TEST_CASE("the result depends neither on the threads nor on the rest of the batch") {
    Random random = Random::fresh();
    INFO(random.text());
    AttentionShape shape{3, 70, 100, 4, 2, 16, DType::fp32, MaskKind::none, true, {}};
    AttentionProblem many(shape, random);
    AttentionProblem one = many;
    {
        const ThreadsVariable threads("5");
        reference::attention(many.reference_call());
    }
    const ThreadsVariable threads("1");
    reference::attention(one.reference_call());
    JITNEY_CHECK_CLOSE(one.out, many.out, (Tolerance{0.0, 0.0}));

    one.out.poison();
    reference::Attention call = one.reference_call();
    for (Tensor* tensor : {&call.q, &call.k, &call.v, &call.out, &*call.lse}) {
        tensor->shape[0] = 1;
        tensor->data = static_cast<float*>(tensor->data) + tensor->strides[0];
    }
    reference::attention(call);
    for (std::int64_t i = 0; i < 70; ++i)
        CHECK(one.out.at({1, i, 3, 5}) == many.out.at({1, i, 3, 5}));
    CHECK(std::isnan(one.out.at({0, 0, 0, 0})));
}

TEST_CASE("formats may be mixed, and out may be fp32") {
    Random random = Random::fresh();
    INFO(random.text());
    AttentionShape shape{1, 4, 50, 2, 2, 16, DType::bf16, MaskKind::none, false, {}};
    AttentionProblem narrow(shape, random);
    reference::attention(narrow.reference_call());
    HostTensor wide(DType::fp32, narrow.out.shape());
    reference::Attention call = narrow.reference_call();
    call.out = wide.view();
    reference::attention(call);
    JITNEY_CHECK_CLOSE(narrow.out, wide, (Tolerance{0.0, 0x1p-8}));
    int unrounded = 0;
    for (std::int64_t i = 0; i < wide.elements(); ++i) {
        if (wide.get(i) != narrow.out.get(i)) ++unrounded;
    }
    CHECK(unrounded > 0);
}

TEST_CASE("the values' dimension may differ from the keys'") {
    AttentionProblem problem = counting_problem(small(1, 9));
    HostTensor values(DType::fp32, {1, 9, 1, 3});
    HostTensor out(DType::fp32, {1, 1, 1, 3});
    values.fill([](std::int64_t i) { return static_cast<double>(i % 3); });
    reference::Attention call = problem.reference_call();
    call.v = values.view();
    call.out = out.view();
    reference::attention(call);
    for (std::int64_t d = 0; d < 3; ++d)
        CHECK(out.get(d) == doctest::Approx(static_cast<double>(d)));
}

TEST_CASE("the LSE is optional") {
    AttentionProblem problem = counting_problem(small(1, 9));
    reference::Attention call = problem.reference_call();
    call.lse.reset();
    reference::attention(call);
    CHECK(problem.out.get(0) == doctest::Approx(5.0));
    CHECK(std::isnan(problem.lse.get(0)));
}

TEST_CASE("arguments that contradict each other are refused, and say how") {
    Random random(1);
    AttentionShape shape{2, 3, 7, 6, 2, 4, DType::bf16, MaskKind::heads, false, {}};
    AttentionProblem problem(shape, random);
    const auto refuses = [&](const char* part, auto spoil) {
        reference::Attention call = problem.reference_call();
        spoil(call);
        try {
            reference::attention(call);
            FAIL_CHECK("accepted: ", part);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos,
                          std::string(error.what()));
        }
    };
    refuses("k has the shape [2, 7, 2, 5]", [](auto& call) { call.k.shape[3] = 5; });
    refuses("v has the shape [2, 6, 2, 4]", [](auto& call) { call.v.shape[1] = 6; });
    refuses("out has the shape [2, 3, 5, 4]", [](auto& call) { call.out.shape[2] = 5; });
    refuses("q has 6 heads and k has 4", [](auto& call) {
        call.k.shape[2] = 4;
        call.v.shape[2] = 4;
    });
    refuses("lse has the shape [2, 5, 3]", [](auto& call) { call.lse->shape[1] = 5; });
    refuses("lse must be fp32", [](auto& call) { call.lse->dtype = DType::bf16; });
    refuses("the mask must be boolean", [](auto& call) { call.mask->dtype = DType::int32; });
    refuses("dimension 1 must be 6 or 1", [](auto& call) { call.mask->shape[1] = 2; });
    refuses("the mask has the shape [2]", [](auto& call) { call.mask->ndim = 1; });
    refuses("q must be fp32, fp16 or bf16", [](auto& call) { call.q.dtype = DType::int32; });
    refuses("k is not in host memory", [](auto& call) { call.k.device = {DeviceType::cuda, 0}; });
    refuses("q has the shape [2, 3, 6]", [](auto& call) { call.q.ndim = 3; });
    refuses("head_dim is 0", [](auto& call) { call.q.shape[3] = 0; });
}
