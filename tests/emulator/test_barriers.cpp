// Barriers that count, named barriers that some only come to, and registers that warpgroups share.
#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/hopper.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

namespace {

constexpr int kRounds = 7;
constexpr int kShared = 2 * 128 + 4 * 8;

std::string hand_over_fault(const Kernel& kernel, int rounds = kRounds) {
    const Buffer out = output(32 * kRounds);
    return fault_of(kernel, 1, 64, kShared, toys::HandOverParams{out.as<unsigned>(), rounds});
}

}  // namespace

TEST_CASE("barriers hand places in shared memory over and back, for every order of threads") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Buffer out = output(32 * kRounds);
        run_kernel(toys::hands_over, 1, 64, kShared,
                   toys::HandOverParams{out.as<unsigned>(), kRounds}, run_seed() + seed);
        for (unsigned i = 0; i < 32 * kRounds; ++i)
            REQUIRE(out.as<unsigned>()[i] == i / 32 * 32 + 31 - i % 32);
    }
}

TEST_CASE("a phase that can't end is a deadlock, with what it lacks") {
    const std::string more = hand_over_fault(toys::hands_over_for_one_arrival_more);
    CHECK_SAYS(more, "wait for what will not come");
    CHECK_SAYS(more, "32 wait at a barrier that counts (barriers.cpp:");
    CHECK_SAYS(more, "phase 0 of the barrier at offset 256, which lacks 1 of 33 arrivals");
}

TEST_CASE("wrong phases and arrivals are seen") {
    if (!kInstrumented) return;
    CHECK_FALSE(hand_over_fault(toys::hands_over_arriving_twice).empty());
    CHECK_FALSE(hand_over_fault(toys::hands_over_reading_a_phase_early, 1).empty());
    CHECK_FALSE(hand_over_fault(toys::hands_over_for_one_arrival_less, 1).empty());
    CHECK_FALSE(hand_over_fault(toys::hands_over_into_a_place_in_use).empty());
    CHECK_SAYS(hand_over_fault(toys::hands_over_by_a_barrier_of_now), "at offset 256");
    CHECK_SAYS(hand_over_fault(toys::reads_a_barrier), "where a barrier is");
}

TEST_CASE("who comes to a named barrier and goes on is waited for, and waits for nobody") {
    const Buffer out = output(64);
    const toys::HandOverParams params{out.as<unsigned>(), 0};
    run_kernel(toys::comes_and_goes_on, 1, 128, 256, params);
    for (unsigned i = 0; i < 64; ++i)
        CHECK(out.as<unsigned>()[i] == 63 - i);
    if (kInstrumented) {
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            CHECK_FALSE(
                fault_of(toys::comes_and_reads_on, 1, 128, 256, params, run_seed() + seed).empty());
        }
    }
}

TEST_CASE("registers that nobody gave can't be taken") {
    const Buffer out = output(256);
    const toys::HandOverParams params{out.as<unsigned>(), 0};
    run_kernel(toys::shares_registers, 1, 384, 0, params);
    for (unsigned i = 0; i < 256; ++i)
        CHECK(out.as<unsigned>()[i] == i + 128);
    CHECK_SAYS(fault_of(toys::takes_more_than_given, 1, 384, 0, params), "wait at setmaxnreg.inc");
    CHECK_SAYS(fault_of(toys::gives_more_than_it_has, 1, 384, 0, params), "gives registers up to");
}
