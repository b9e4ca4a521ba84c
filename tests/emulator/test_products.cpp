#include <cmath>
#include <cstring>
#include <vector>

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

// Products of 1 with what follows of k; the accumulator is `sum`.
float fp8_sum(float sum, const std::vector<float>& terms) {
    const Buffer a(16 * 32, "a");
    const Buffer b(8 * 32, "b");
    for (unsigned i = 0; i < 16 * 32; ++i)
        a.as<std::uint8_t>()[i] = fp8_bits(1.0f, 4);
    for (unsigned i = 0; i < 8 * 32; ++i) {
        const unsigned k = i % 32;
        b.as<std::uint8_t>()[i] = fp8_bits(k < terms.size() ? terms[k] : 0.0f, 5);
    }
    const Buffer out = output(16 * 8);
    for (unsigned i = 0; i < 16 * 8; ++i)
        out.as<float>()[i] = sum;
    run_kernel(toys::product_fp8, 1, 32, 0,
               toys::Fp8ProductParams{a.as<unsigned>(), b.as<unsigned>(), out.as<float>()});
    for (unsigned i = 1; i < 16 * 8; ++i)
        CHECK(out.as<unsigned>()[i] == out.as<unsigned>()[0]);
    return out.as<float>()[0];
}

TEST_CASE("products of 8-bit formats are added up in 14 bits, and what lies below is cut off") {
    CHECK(fp8_sum(0.0f, {}) == 0.0f);
    CHECK(fp8_sum(1.0f, {0x1p-13f}) == 1.0f + 0x1p-13f);
    CHECK(fp8_sum(1.0f, {0x1p-14f}) == 1.0f);
    CHECK(fp8_sum(1.0f, {0x1p-14f, 0x1p-14f, 0x1p-14f, 0x1p-14f}) == 1.0f);
    CHECK(fp8_sum(-1.0f, {-0x1p-14f}) == -1.0f);
    CHECK(fp8_sum(1.0f, {1.75f * 0x1p-13f}) == 1.0f + 0x1p-13f);
    CHECK(fp8_sum(-1.0f, {-1.75f * 0x1p-13f}) == -1.0f - 0x1p-13f);
    // The largest may be a product, and an accumulator of more bits is cut off as well.
    CHECK(fp8_sum(1.0f + 0x1p-20f, {0x1p13f}) == 0x1p13f + 1.0f);
    CHECK(fp8_sum(1.0f + 0x1p-13f + 0x1p-20f, {}) == 1.0f + 0x1p-13f);
    CHECK(fp8_sum(-1.0f, {0x1p14f}) == 0x1p14f);
    // So is a sum that is longer than its largest term.
    CHECK(fp8_sum(1.0f + 0x1p-13f, {1.0f}) == 2.0f);
    CHECK(fp8_sum(1.0f + 0x1p-13f, {-1.0f}) == 0x1p-13f);
    CHECK(std::isnan(fp8_sum(std::nanf(""), {1.0f})));
    CHECK(std::isinf(fp8_sum(INFINITY, {1.0f})));
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
