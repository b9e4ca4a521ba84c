// How the tensors may lie, in which formats, and that nothing else matters.
#include "operations/attention/reference.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "operations/reference/rows.hpp"
#include "tests/reference/counting_problem.hpp"
#include "tests/reference/threads.hpp"
#include "tests/support/compare.hpp"

using namespace jitney;
using namespace jitney::tests;

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
