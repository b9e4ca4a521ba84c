// Which tensors share memory.
#include "api/call_memory.hpp"

#include <vector>

#include "tests/api/bad_call.hpp"
#include "tests/support/random.hpp"

namespace jitney::tests {
namespace {

using checks::CallMemory;
using checks::Named;
using checks::overlap;

// Byte for byte.
bool share_a_byte(const Tensor& a, const Tensor& b, const std::vector<std::byte>& memory) {
    std::vector<int> owners(memory.size());
    int owner = 0;
    bool shared = false;
    for (const Tensor* tensor : {&a, &b}) {
        ++owner;
        const auto size = static_cast<std::int64_t>(size_of(tensor->dtype));
        const std::int64_t begin = static_cast<const std::byte*>(tensor->data) - memory.data();
        for (std::int64_t i = 0; i < tensor->elements(); ++i) {
            std::int64_t at = begin;
            std::int64_t left = i;
            for (auto dim = static_cast<std::size_t>(tensor->ndim); dim-- > 0;) {
                at += left % tensor->shape[dim] * tensor->strides[dim] * size;
                left /= tensor->shape[dim];
            }
            for (std::int64_t byte = at; byte < at + size; ++byte) {
                int& had = owners.at(static_cast<std::size_t>(byte));
                if (owner == 2 && had == 1) shared = true;
                had = owner;
            }
        }
    }
    return shared;
}

// Somewhere in the memory, with strides that lead nowhere else.
Tensor random_view(Random& random, std::vector<std::byte>& memory) {
    const auto bytes = static_cast<std::int64_t>(memory.size());
    Tensor tensor;
    tensor.dtype = static_cast<DType>(random.integer(0, 4));
    tensor.ndim = static_cast<int>(random.integer(0, 3));
    const std::int64_t size = size_of(tensor.dtype);
    std::int64_t first = 0;
    std::int64_t last = size;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i) {
        tensor.shape[i] = random.integer(0, 5);
        tensor.strides[i] = random.chance(0.3) ? random.integer(1, 2) * 8 : random.integer(-30, 30);
        const std::int64_t reach =
            std::max<std::int64_t>(tensor.shape[i] - 1, 0) * tensor.strides[i] * size;
        (reach < 0 ? first : last) += reach;
    }
    const std::int64_t room = bytes - (last - first);
    if (room < 0) return random_view(random, memory);
    const std::int64_t begin = random.integer(0, room / size) * size - first;
    tensor.data = memory.data() + begin;
    return tensor;
}

Tensor bytes_at(std::vector<std::byte>& memory, std::int64_t begin,
                std::initializer_list<std::int64_t> shape,
                std::initializer_list<std::int64_t> strides) {
    return Tensor::strided(memory.data() + begin, DType::fp8_e4m3, shape, strides);
}

}  // namespace

TEST_CASE("tensors overlap where a byte belongs to both, and only there") {
    Random random = Random::fresh();
    INFO(random.text());
    std::vector<std::byte> memory(400);
    int shared = 0;
    for (int i = 0; i < 20000; ++i) {
        const Tensor a = random_view(random, memory);
        const Tensor b = random_view(random, memory);
        const bool expected = share_a_byte(a, b, memory);
        shared += expected ? 1 : 0;
        CAPTURE(checks::shape_text(a) + checks::strides_text(a));
        CAPTURE(checks::shape_text(b) + checks::strides_text(b));
        CHECK(overlap(a, b) == expected);
        CHECK(overlap(b, a) == expected);
    }
    CHECK(shared > 1000);
    CHECK(shared < 19000);
}

TEST_CASE("columns of one matrix, and rows in turn, lie apart") {
    std::vector<std::byte> memory(1 << 20);
    const Tensor left = bytes_at(memory, 0, {1000, 16}, {1024, 1});
    CHECK_FALSE(overlap(left, bytes_at(memory, 16, {1000, 16}, {1024, 1})));
    CHECK(overlap(left, bytes_at(memory, 15, {1000, 16}, {1024, 1})));
    CHECK_FALSE(overlap(left, bytes_at(memory, 16, {1000, 1008}, {1024, 1})));
    CHECK(overlap(left, bytes_at(memory, 16, {1000, 1009}, {1024, 1})));
    // At other distances.
    CHECK_FALSE(overlap(left, bytes_at(memory, 16, {2000, 16}, {512, 1})));
    CHECK(overlap(left, bytes_at(memory, 512, {1000, 16}, {512, 1})));
    CHECK_FALSE(overlap(bytes_at(memory, 0, {500, 1024}, {2048, 1}),
                        bytes_at(memory, 1024, {500, 1024}, {2048, 1})));
    // An element for all rows, in a gap of the others.
    CHECK_FALSE(overlap(left, bytes_at(memory, 100, {1000, 16}, {0, 1})));
    CHECK(overlap(left, bytes_at(memory, 1024, {1000, 1}, {0, 1})));
    // One behind the other.
    CHECK_FALSE(overlap(bytes_at(memory, 0, {100}, {1}), bytes_at(memory, 100, {100}, {1})));
    CHECK(overlap(bytes_at(memory, 0, {100}, {1}), bytes_at(memory, 99, {100}, {1})));
}

TEST_CASE("what has no bytes overlaps nothing, and a number without dimensions has some") {
    std::vector<std::byte> memory(64);
    const Tensor all = bytes_at(memory, 0, {64}, {1});
    CHECK_FALSE(overlap(all, bytes_at(memory, 8, {0, 8}, {8, 1})));
    CHECK_FALSE(overlap(all, Tensor::contiguous(nullptr, DType::fp32, {4})));
    CHECK_FALSE(overlap(Tensor{}, Tensor{}));
    CHECK(overlap(all, Tensor::contiguous(memory.data() + 60, DType::fp32, {})));
    CHECK_FALSE(overlap(all, Tensor::contiguous(memory.data() + 64, DType::fp32, {})));
}

TEST_CASE("a call's memory may be shared where it is read, not where it is written") {
    std::vector<std::byte> memory(1024);
    const Tensor first = bytes_at(memory, 0, {100}, {1});
    const Tensor second = bytes_at(memory, 50, {100}, {1});
    CallMemory calls;
    calls.reads({"first", first, ""});
    calls.reads({"second", second, ""});
    const auto check_sentence_of = [](const auto& call, const std::vector<std::string>& words) {
        try {
            call();
            FAIL_CHECK("it was accepted");
        } catch (const Error& error) {
            const std::string text = error.what();
            check_sentence(text);
            for (const std::string& word : words)
                CHECK_MESSAGE(text.find(word) != std::string::npos, text);
        }
    };
    const Tensor third = bytes_at(memory, 149, {1}, {1});
    check_sentence_of([&] { calls.writes({"third", third, ""}); }, {"third overlaps second", "0x"});
    check_sentence_of([&] { calls.writes({"other", second, ""}); }, {"other overlaps first"});
    const Tensor apart = bytes_at(memory, 200, {100}, {1});
    calls.writes({"apart", apart, ""});
    // The written one is named first, whichever came first.
    check_sentence_of([&] { calls.reads({"late", apart, ""}); }, {"apart begins where late does"});
    calls.writes(Workspace{memory.data() + 300, 100});
    check_sentence_of(
        [&] {
            calls.writes(Workspace{memory.data(), ~std::size_t{0}});
        },
        {"the workspace", "first"});
}

}  // namespace jitney::tests
