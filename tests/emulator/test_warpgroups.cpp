// Products of a warpgroup, which run on behind the instruction.
#include <cmath>

#include "tests/emulator/machine/formats.hpp"
#include "tests/emulator/machine/random.hpp"
#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/hopper.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

namespace {

constexpr int kShared = (64 + 32) * 128 + 16;

struct Factors {
    Factors() : a(64 * 64 * 2, "a"), b(32 * 64 * 2, "b"), out(64 * 32 * 4, "out") {
        Random random(run_seed());
        for (const Buffer* each : {&a, &b}) {
            for (unsigned i = 0; i < each->bytes() / 2; ++i)
                each->as<std::uint16_t>()[i] =
                    bf16_bits(static_cast<float>(random.below(2001)) / 1000.0f - 1.0f);
        }
    }
    toys::WarpgroupParams params() const {
        return {a.as<unsigned short>(), b.as<unsigned short>(), out.as<float>()};
    }
    // Elements of out that are not the product.
    unsigned wrong() const {
        unsigned count = 0;
        for (unsigned row = 0; row < 64; ++row) {
            for (unsigned column = 0; column < 32; ++column) {
                double sum = 0;
                for (unsigned k = 0; k < 64; ++k) {
                    sum += static_cast<double>(bf16_value(a.as<std::uint16_t>()[row * 64 + k])) *
                           static_cast<double>(bf16_value(b.as<std::uint16_t>()[column * 64 + k]));
                }
                const auto got = static_cast<double>(out.as<float>()[row * 32 + column]);
                count += std::fabs(got - sum) < 1e-4 ? 0u : 1u;
            }
        }
        return count;
    }
    Buffer a;
    Buffer b;
    Buffer out;
};

std::string fault_of_product(const Kernel& kernel, int shared_bytes = kShared) {
    const Factors factors;
    return fault_of(kernel, 1, 128, shared_bytes, factors.params());
}

}  // namespace

TEST_CASE("a warpgroup multiplies from shared memory and from registers") {
    for (const Kernel* kernel : {&toys::multiplies, &toys::multiplies_registers}) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
            const Factors factors;
            run_kernel(*kernel, 1, 128, kShared, factors.params(), run_seed() + seed);
            CHECK(factors.wrong() == 0);
        }
    }
}

TEST_CASE("accumulators are nothing before the wait for their products") {
    const Factors factors;
    run_kernel(toys::multiplies_and_reads_at_once, 1, 128, kShared, factors.params());
    CHECK(factors.wrong() == 128);  // one of each thread, which is NaN
    constexpr const char* early = "reads accumulators whose products it has not waited for";
    CHECK_SAYS(fault_of_product(toys::multiplies_and_settles_at_once), early);
    CHECK_SAYS(fault_of_product(toys::multiplies_and_waits_for_too_few), early);
    CHECK_SAYS(fault_of_product(toys::multiplies_and_ends), "without having waited for products");
}

TEST_CASE("what is multiplied is left alone meanwhile") {
    CHECK_SAYS(fault_of_product(toys::multiplies_and_changes_c), "changed accumulators");
    CHECK_SAYS(fault_of_product(toys::multiplies_and_changes_a), "changed registers of a");
    CHECK_SAYS(fault_of_product(toys::multiplies_without_beginning), "has not begun");
    CHECK_SAYS(fault_of_product(toys::multiplies_on_a_branch), "wait at wgmma");
    CHECK_SAYS(fault_of_product(toys::multiplies_past_the_end, 96 * 128), "which has 12288 bytes");
    if (!kInstrumented) return;
    // It has not landed, or nobody has waited for it.
    CHECK_SAYS(fault_of_product(toys::multiplies_what_has_not_landed), " of shared memory");
    CHECK_SAYS(fault_of_product(toys::multiplies_and_overwrites_b), "the tensor cores of warp");
    CHECK_SAYS(fault_of_product(toys::multiplies_without_a_fence), "made no fence between");
    CHECK_SAYS(fault_of_product(toys::multiplies_without_a_barrier), "of shared memory");
}
