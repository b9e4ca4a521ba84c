#include <utility>

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

#ifdef __SANITIZE_ADDRESS__  // g++'s name for a build in which undefined behaviour is trapped, too
TEST_CASE("a misaligned vector is seen") {
    const Buffer in = counting(64);
    const Buffer out = output(64);
    CHECK_SAYS(memory_fault_of(toys::vector_copy, 1, 8, 0,
                               toys::CopyParams{in.as<float>(), out.as<float>(), 8, 1}),
               "misaligned address");
}
#endif
