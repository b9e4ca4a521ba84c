// Which tensors share memory.
#include "operations/call_memory.hpp"

#include <vector>

#include "tests/api/bad_call.hpp"

namespace jitney::tests {
namespace {

using checks::CallMemory;

bool overlap(const Tensor& a, const Tensor& b) {
    const bool some = checks::shared(a, b) == checks::Sharing::some;
    CHECK((checks::shared(b, a) == checks::Sharing::some) == some);
    return some;
}

Tensor bytes_at(std::vector<std::byte>& memory, std::int64_t begin,
                std::initializer_list<std::int64_t> shape,
                std::initializer_list<std::int64_t> strides) {
    return Tensor::strided(memory.data() + begin, DType::fp8_e4m3, shape, strides);
}

}  // namespace

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
    const Tensor third = bytes_at(memory, 149, {1}, {1});
    const Tensor apart = bytes_at(memory, 200, {100}, {1});
    const auto check_says = [&](const auto& add, const std::vector<std::string>& words) {
        CallMemory call;
        call.reads("first", first);
        call.reads("second", second);
        call.writes("apart", apart);
        CHECK(call.apart());
        call.check();
        add(call);
        CHECK(call.apart() == words.empty());
        if (words.empty()) return call.check();
        try {
            call.check();
            FAIL_CHECK("it was accepted");
        } catch (const Error& error) {
            const std::string text = error.what();
            check_sentence(text);
            for (const std::string& word : words)
                CHECK_MESSAGE(text.find(word) != std::string::npos, text);
        }
    };
    check_says([](CallMemory&) {}, {});
    check_says([&](CallMemory& call) { call.writes("third", third); },
               {"third overlaps second", "0x"});
    check_says([&](CallMemory& call) { call.writes("other", second); },
               {"other", "overlaps first"});
    // The written one is named first, whichever came first; the first pair counts.
    check_says(
        [&](CallMemory& call) {
            call.reads("late", apart);
            call.writes("third", third);
        },
        {"apart begins where late does"});
    const auto workspace = [&memory](std::ptrdiff_t at, std::size_t bytes) {
        return [&memory, at, bytes](CallMemory& call) {
            call.writes(Workspace{memory.data() + at, bytes});
        };
    };
    check_says(workspace(300, 100), {});
    check_says(workspace(0, ~std::size_t{0}), {"the workspace", "first"});
    // In place, or apart, or neither.
    check_says([&](CallMemory& call) { call.updates("in", third, "out", third); },
               {"out", "second"});
    const Tensor own = bytes_at(memory, 400, {10}, {1});
    const Tensor moved = bytes_at(memory, 405, {10}, {1});
    check_says([&](CallMemory& call) { call.updates("in", own, "out", own); }, {});
    check_says([&](CallMemory& call) { call.updates("in", own, "out", moved); },
               {"out overlaps in"});
}

}  // namespace jitney::tests
