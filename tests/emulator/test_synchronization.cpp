#include <set>

#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/toys.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

namespace {

constexpr int kShared = 128 * sizeof(float);

toys::ReverseParams reversal(const Buffer& in, const Buffer& out) {
    return {in.as<float>(), out.as<float>()};
}

}  // namespace

TEST_CASE("a block shares memory across a barrier, for every order of its threads") {
    const Buffer in = counting(512);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        for (const unsigned workers : {1u, 2u}) {
            const Buffer out = output(512);
            run_kernel(toys::reverse, 4, 128, kShared, reversal(in, out), run_seed() + seed,
                       workers);
            for (unsigned i = 0; i < 512; ++i)
                REQUIRE(out.as<float>()[i] == static_cast<float>(i / 128 * 128 + 127 - i % 128));
        }
    }
}

TEST_CASE("a missing barrier is seen") {
    const Buffer in = counting(128);
    const Buffer out = output(128);
    const auto params = reversal(in, out);
    if (kInstrumented) {
        CHECK_SAYS(fault_of(toys::reverse_without_barrier, 1, 128, kShared, params),
                   "nobody wrote");
        const std::string early =
            fault_of(toys::reverse_in_place_too_early, 1, 128, kShared, params);
        CHECK_SAYS(early, "in a race");
        CHECK_SAYS(early, "synchronization.cpp:");
        return;
    }
    run_kernel(toys::reverse_without_barrier, 1, 128, kShared, params);
    unsigned poisoned = 0;
    for (unsigned i = 0; i < 128; ++i)
        poisoned += out.as<float>()[i] != static_cast<float>(127 - i) ? 1u : 0u;
    CHECK(poisoned > 0);
}

TEST_CASE("an access past the end of shared memory is seen, and a read of what nobody wrote") {
    const Buffer in = counting(128);
    const Buffer out = output(128);
    CHECK_MEMORY_FAULT(
        memory_fault_of(toys::reverse_past_the_end, 1, 128, kShared, reversal(in, out)),
        "writes 4 bytes at offset 512 of shared memory, which has 512 bytes");
    if (kInstrumented) {
        CHECK_SAYS(fault_of(toys::reads_what_nobody_wrote, 1, 32, kShared, reversal(in, out)),
                   "nobody wrote");
    }
}

TEST_CASE("lanes of a warp exchange through shared memory with __syncwarp") {
    const Buffer in = counting(64);
    const Buffer out = output(64);
    run_kernel(toys::warp_exchange, 1, 64, kShared, reversal(in, out));
    for (unsigned i = 0; i < 64; ++i)
        CHECK(out.as<float>()[i] == static_cast<float>(i ^ 1));
#ifndef JITNEY_EMULATOR_ASAN
    CHECK(
        !fault_of(toys::warp_exchange_without_barrier, 1, 64, kShared, reversal(in, out)).empty());
#endif
}

TEST_CASE("shuffles and votes") {
    const Buffer in = counting(64);
    const Buffer out = output(256);
    run_kernel(toys::rotates_by_shuffle, 1, 64, 0, reversal(in, out));
    for (unsigned i = 0; i < 64; ++i) {
        const float* values = out.as<float>() + 4 * i;
        CHECK(values[0] == static_cast<float>(i / 32 * 32 + (i + 1) % 32));
        CHECK(values[1] == static_cast<float>(4 * (i / 4 * 4) + 6));
        CHECK(values[2] == static_cast<float>(i % 32 == 0 ? i : i - 1));
        CHECK(values[3] == static_cast<float>(i % 32 == 31 ? i : i + 1));
    }
    CHECK_SAYS(fault_of(toys::shuffles_from_outside, 1, 32, 0, reversal(in, out)),
               "reads lane 20, which the mask 0x0000ffff leaves out");
}

TEST_CASE("a collective that not all reach is reported with who waits where") {
    const Buffer out = output(128);
    const toys::BarrierParams params{out.as<int>()};
    const std::string half = fault_of(toys::half_a_barrier, 1, 128, 0, params);
    CHECK_SAYS(half, "__syncthreads_count");
    CHECK_SAYS(half, "synchronization.cpp:");

    CHECK_SAYS(fault_of(toys::early_exit, 1, 128, 0, params), "exit");
    CHECK_SAYS(fault_of(toys::barriers_on_branches, 1, 128, 0, params), "came to another");
    CHECK_SAYS(fault_of(toys::mixed_collectives, 1, 32, 0, params), "wait at");

    const std::string warp = fault_of(toys::half_a_warp, 1, 32, 0, params);
    CHECK_SAYS(warp, "32 threads wait for what will not come");
    CHECK_SAYS(warp, "16 wait at __syncwarp (synchronization.cpp:");
    CHECK_SAYS(warp, "lanes 0xffffffff: 0-15");
    CHECK_SAYS(warp, "lanes 0xffff0001: 16-31");
}

TEST_CASE("groups of warps meet at barriers of their own") {
    const Buffer out = output(128);
    const toys::BarrierParams params{out.as<int>()};
    run_kernel(toys::groups_of_warps, 1, 128, kShared, params);
    for (unsigned i = 0; i < 128; ++i)
        CHECK(out.as<int>()[i] == static_cast<int>(i / 64 * 64 + 63 - i % 64));
    if (!kInstrumented) return;
    CHECK(!fault_of(toys::groups_without_barrier, 1, 128, kShared, params).empty());
}

TEST_CASE("the last block adds up what the others wrote") {
    const Buffer in = counting(1000);
    bool seen = false;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        for (const bool right : {true, false}) {
            const Buffer partial = output(7);
            const Buffer out = output(1);
            const Buffer done = output(1);
            *done.as<unsigned>() = 0;
            const toys::SumParams params{in.as<float>(), partial.as<float>(), done.as<unsigned>(),
                                         out.as<float>(), 1000};
            const Kernel& kernel =
                right ? toys::sum_by_last_block : toys::sum_by_last_block_too_early;
            run_kernel(kernel, 7, 32, 1, params, run_seed() + seed);
            if (right) REQUIRE(*out.as<float>() == 499500.0f);
            if (!right && !(*out.as<float>() == 499500.0f)) seen = true;
        }
    }
    CHECK(seen);
}

TEST_CASE("a seed repeats an order, and other seeds give others") {
    const Buffer in = counting(128);
    const Buffer out = output(128);
    const toys::BarrierParams params{out.as<int>()};
    std::set<std::string> reports;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const std::string report = fault_of(toys::half_a_barrier, 3, 128, 0, params, seed);
        CHECK(report == fault_of(toys::half_a_barrier, 3, 128, 0, params, seed));
        reports.insert(report);
    }
    CHECK(reports.size() > 5);
}

TEST_CASE("a launch that no GPU takes is refused") {
    const Buffer in = counting(128);
    const Buffer out = output(128);
    const auto params = reversal(in, out);
    CHECK_SAYS(fault_of(toys::reverse, 0, 128, kShared, params), "its grid is empty");
    CHECK_SAYS(fault_of(toys::reverse, 1, 160, kShared, params), "where it takes up to 128");
    CHECK_SAYS(fault_of(toys::reverse, 1, 128, 228 << 10, params), "233472 bytes of shared memory");
}
