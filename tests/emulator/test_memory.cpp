#include <utility>
#include <vector>

#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/toys.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

TEST_CASE("a buffer is poisoned and keeps to its size") {
    for (const std::size_t bytes : {0u, 1u, 15u, 16u, 100u, 4096u, 5000u, 1u << 20}) {
        Buffer buffer(bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 16 == 0);
        CHECK(objection(buffer.data(), bytes, true).empty());
        CHECK(!objection(buffer.data(), bytes + 1, false).empty());
        CHECK(!objection(buffer.data() - 1, 1, false).empty());
        for (std::size_t i = 0; i < bytes; ++i)
            REQUIRE(buffer.data()[i] == std::byte{0xff});
    }
    int of_the_host = 0;
    CHECK(objection(&of_the_host, sizeof of_the_host, true).empty());
}

TEST_CASE("what a buffer forbids moves along with it") {
    Buffer first(64);
    first.forbid(16, 8);
    first.make_read_only();
    const Buffer second = std::move(first);
    CHECK(objection(second.data() + 8, 8, false).empty());
    CHECK(!objection(second.data() + 8, 9, false).empty());
    CHECK(!objection(second.data(), 1, true).empty());
}

TEST_CASE("a kernel's wrong accesses to global memory are seen") {
    Buffer in(64 * sizeof(float), "in");
    Buffer out(64 * sizeof(float), "out");
    const auto report = [&](int count, int offset) {
        return memory_fault_of(toys::plain_copy, 1, 128, 0,
                               toys::CopyParams{in.as<float>(), out.as<float>(), count, offset});
    };
    CHECK(report(64, 0).empty());
    CHECK_MEMORY_FAULT(report(64, 1),
                       "reads 4 bytes at offset 256 of in, which has 256 bytes, at copies.cpp:");
    CHECK_MEMORY_FAULT(report(1, -1), "reads 4 bytes at offset -4 of in");
    CHECK_MEMORY_FAULT(report(65, 0), "which has 256 bytes, at copies.cpp:");
    in.forbid(40, 8);
    CHECK(report(10, 0).empty());
    CHECK_MEMORY_FAULT(report(11, 0),
                       "reads 4 bytes at offset 40 of in, which are not its business");
    in.allow_all();
    out.make_read_only();
    CHECK_MEMORY_FAULT(report(1, 0), "writes 4 bytes at offset 0 of out, an input");
}

TEST_CASE("an access of several bytes at once at an address that is no multiple of them is seen") {
    const Buffer in = counting(64);
    const Buffer out = output(64);
    const auto report = [&](const Kernel& kernel, int count, int offset) {
        return fault_of(kernel, 1, 8, 128,
                        toys::CopyParams{in.as<float>(), out.as<float>(), count, offset});
    };
    CHECK(report(toys::vector_copy, 8, 4).empty());
    const std::string read = report(toys::vector_copy, 8, 1);
    CHECK_SAYS(read, "of in, which is no multiple of 16, at ");
    CHECK_SAYS(read, "in vector.cuh:");
    CHECK_SAYS(read, "in copies.cpp:");
    CHECK_SAYS(read, "thread ");
    CHECK(report(toys::vector_copy_to, 8, 4).empty());
    CHECK_SAYS(report(toys::vector_copy_to, 8, 2), "of out, which is no multiple of 16, at ");
    CHECK(report(toys::asynchronous_copy, 1, 4).empty());
    for (const int count : {0, 1}) {
        const std::string copied = report(toys::asynchronous_copy, count, 3);
        CHECK_SAYS(copied, "copies 16 bytes from an address that is not a multiple of 16");
        CHECK_SAYS(copied, "copies.cpp:");
    }
    if (!kInstrumented) return;  // UndefinedBehaviorSanitizer sees it there
    CHECK(report(toys::word_copy, 8, 8).empty());
    CHECK_SAYS(report(toys::word_copy, 8, 2), "of in, which is no multiple of 4, at copies.cpp:");
}

TEST_CASE("a buffer of which little exists is as large as any") {
    constexpr std::size_t kApart = std::size_t{1} << 33;
    Intervals existing;
    for (std::size_t i = 0; i < 100; ++i)
        existing.add(i * kApart, i * kApart + 64 * sizeof(float));
    Buffer in(99 * kApart + 64 * sizeof(float), existing, "in");
    const Buffer out = output(64);
    for (int i = 0; i < 64; ++i)
        in.as<float>()[99 * kApart / sizeof(float) + static_cast<std::size_t>(i)] =
            static_cast<float>(i);
    in.make_read_only();
    const auto report = [&](std::size_t at) {
        return memory_fault_of(
            toys::plain_copy, 1, 64, 0,
            toys::CopyParams{in.as<float>() + at / sizeof(float), out.as<float>(), 64, 0});
    };
    CHECK(report(99 * kApart).empty());
    if (kInstrumented) CHECK(out.as<float>()[63] == 63.0f);
    CHECK_MEMORY_FAULT(report(99 * kApart - 4),
                       "reads 4 bytes at offset 850403524604 of in, which are not its business");
    CHECK_MEMORY_FAULT(report(99 * kApart % (std::size_t{1} << 32) + 1024), "not its business");
    CHECK(objection(in.data() - kApart, 4, false) == "reads 4 bytes outside of every buffer");
}

TEST_CASE("runs of bytes join where they meet") {
    Intervals runs;
    for (const auto& [first, end] : std::vector<std::pair<std::size_t, std::size_t>>{
             {10, 20}, {30, 40}, {50, 60}, {20, 22}, {28, 30}, {35, 52}, {0, 0}}) {
        runs.add(first, end);
    }
    CHECK(runs.runs().size() == 2);
    CHECK(runs.bytes() == 12 + 32);
    for (std::size_t at = 0; at < 70; ++at)
        CHECK(runs.touch(at, at + 1) == ((at >= 10 && at < 22) || (at >= 28 && at < 60)));
    CHECK(runs.touch(0, 11));
    CHECK(!runs.touch(22, 28));
    CHECK(!runs.touch(60, 1000));
    const Intervals gaps = runs.gaps(64);
    CHECK(gaps.bytes() == 64 - runs.bytes());
    CHECK(gaps.runs().size() == 3);
}
