#include <cmath>
#include <cstring>

#include "tests/emulator/machine/formats.hpp"
#include "tests/emulator/machine/random.hpp"
#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/toys.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

namespace {

void check_product(const Kernel& kernel, bool bf16, bool transposed) {
    Random random(run_seed());
    const auto bits = [&](float x) { return bf16 ? bf16_bits(x) : fp16_bits(x); };
    const auto value = [&](std::uint16_t x) { return bf16 ? bf16_value(x) : fp16_value(x); };
    const Buffer a(16 * 16 * 2, "a");
    const Buffer b(16 * 8 * 2, "b");
    const Buffer out(16 * 8 * 4, "out");
    for (unsigned i = 0; i < 16 * 16; ++i)
        a.as<std::uint16_t>()[i] = bits(static_cast<float>(random.below(2001)) / 1000.0f - 1.0f);
    for (unsigned i = 0; i < 16 * 8; ++i)
        b.as<std::uint16_t>()[i] = bits(static_cast<float>(random.below(2001)) / 1000.0f - 1.0f);
    run_kernel(
        kernel, 1, 32, (16 * 24 + 16 * 24) * 2,
        toys::ProductParams{a.as<unsigned short>(), b.as<unsigned short>(), out.as<float>()});
    for (unsigned row = 0; row < 16; ++row) {
        for (unsigned column = 0; column < 8; ++column) {
            double sum = 0.5;
            for (unsigned k = 0; k < 16; ++k) {
                const unsigned at = transposed ? k * 8 + column : column * 16 + k;
                sum += static_cast<double>(value(a.as<std::uint16_t>()[row * 16 + k])) *
                       static_cast<double>(value(b.as<std::uint16_t>()[at]));
            }
            CHECK(std::fabs(static_cast<double>(out.as<float>()[row * 8 + column]) - sum) < 1e-5);
        }
    }
}

}  // namespace

TEST_CASE("ldmatrix and mma make the product of two matrices") {
    check_product(toys::product_bf16, true, false);
    check_product(toys::product_fp16, false, false);
    check_product(toys::product_bf16_transposed, true, true);
}

TEST_CASE("rows of an ldmatrix that lie in the same banks are reported") {
    const Buffer a(16 * 16 * 2, "a");
    const Buffer b(16 * 8 * 2, "b");
    std::memset(a.data(), 0, a.bytes());
    std::memset(b.data(), 0, b.bytes());
    const Buffer out = output(16 * 8);
    CHECK_SAYS(fault_of(toys::product_in_the_same_banks, 1, 32, 2048,
                        toys::ProductParams{a.as<unsigned short>(), b.as<unsigned short>(),
                                            out.as<float>()}),
               "lie in the same banks");
}

TEST_CASE("lanes that come to different instructions are reported") {
    const Buffer out = output(128);
    CHECK_SAYS(fault_of(toys::product_on_a_branch, 1, 32, 0,
                        toys::ProductParams{nullptr, nullptr, out.as<float>()}),
               "all lanes must execute the same instruction");
}
