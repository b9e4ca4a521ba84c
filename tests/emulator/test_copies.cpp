#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/toys.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

namespace {

constexpr unsigned kThreads = 64;
constexpr unsigned kWidth = 4 * kThreads;
constexpr unsigned kCount = 5 * kWidth;
constexpr int kShared = 2 * kWidth * sizeof(float);

toys::CopyParams copying(const Buffer& in, const Buffer& out, int count = kCount) {
    return {in.as<float>(), out.as<float>(), count, 0};
}

}  // namespace

TEST_CASE("copies land when they are waited for; those without a source write zeros") {
    const Buffer in = counting(kCount);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Buffer out = output(kCount);
        run_kernel(toys::copies_in_two_stages, 2, kThreads, kShared, copying(in, out),
                   run_seed() + seed);
        for (unsigned i = 0; i < kCount; ++i) {
            const bool skipped = i % kWidth / 4 == 5;
            REQUIRE(out.as<float>()[i] == (skipped ? 0.0f : static_cast<float>(i)));
        }
    }
}

TEST_CASE("a copy at the end of its source reads no byte behind it") {
    const Buffer in = counting(kCount - 4);
    const Buffer out = output(kCount);
    CHECK_SAYS(fault_of(toys::copies_in_two_stages, 1, kThreads, kShared, copying(in, out)),
               "reads 16 bytes at offset 5104 of in, which has 5104 bytes");
}

TEST_CASE("wrong waits are seen") {
    const Buffer in = counting(kCount);
    const Buffer out = output(kCount);
    const auto params = copying(in, out);
    CHECK_MEMORY_FAULT(memory_fault_of(toys::waits_for_too_few, 1, kThreads, kShared, params),
                       "has not landed");
    CHECK_MEMORY_FAULT(memory_fault_of(toys::reads_before_the_wait, 1, kThreads, kShared, params),
                       "has not landed");
    // As the threads happen to come: a copy over what was just read, or a read while it flies.
    if (kInstrumented) {
        CHECK(!fault_of(toys::copies_over_what_others_read, 1, kThreads, kShared, params).empty());
    }
}

TEST_CASE("copies that are wrong in themselves are reported") {
    const Buffer in = counting(kCount);
    const Buffer out = output(kCount);
    const auto params = copying(in, out);
    CHECK_SAYS(fault_of(toys::forgets_to_wait, 1, kThreads, kShared, params),
               "exits with 1 asynchronous copies not waited for");
    const std::string misplaced =
        fault_of(toys::copies_to_a_misaligned_place, 1, kThreads, kShared, params);
    CHECK_SAYS(misplaced, "must be written at multiples of 16");
    CHECK_SAYS(misplaced, "copies.cpp:");
}
