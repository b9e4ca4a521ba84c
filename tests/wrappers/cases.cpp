#include "tests/wrappers/cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "operations/reference/numeric.hpp"

namespace jitney::wrappers {
namespace {

using namespace reference;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr unsigned kOnes = 0xffffffffu;

unsigned bits(float x) {
    return std::bit_cast<unsigned>(x);
}
float number(unsigned bits) {
    return std::bit_cast<float>(bits);
}

// Every number of 16 bits as the upper half of a float, with lower halves that are ties and their
// neighbours; each beside one that comes long after it.
Words pairs_of_floats() {
    Words words;
    const auto lower = [](unsigned i) {
        constexpr unsigned kHalves[] = {0, 0x8000, 0x7fff, 0x8001, 0xffff, 0x1000, 0x0fff, 0x1001};
        return kHalves[i % 8];
    };
    for (unsigned i = 0; i < 0x10000; ++i) {
        const unsigned other = (i * 40503u + 7u) % 0x10000;
        words.push_back(i << 16 | lower(i + (i >> 8)));
        words.push_back(other << 16 | lower(other));
    }
    return words;
}

Call call_of_pairs(const char* kernel, std::size_t words_a_thread) {
    Call call{.kernel = kernel, .blocks = 256, .threads = 256};
    call.in = pairs_of_floats();
    call.out.assign(0x10000 * words_a_thread, 0);
    return call;
}

bool is_nan_16(unsigned code, unsigned largest) {
    return (code & 0x7fff) > largest;
}

// The same code, or both NaN.
bool same_fp16(unsigned a, unsigned b) {
    return a == b || (is_nan_16(a, 0x7c00) && is_nan_16(b, 0x7c00));
}
bool same_bf16(unsigned a, unsigned b) {
    return a == b || (is_nan_16(a, 0x7f80) && is_nan_16(b, 0x7f80));
}
bool same_float(unsigned a, unsigned b) {
    return a == b || (std::isnan(number(a)) && std::isnan(number(b)));
}

void check_16_bits(const Run& run, int arch) {
    const Call call = call_of_pairs("to_16_bits", 6);
    const Words out = run(call);
    unsigned wrong = 0;
    for (std::size_t i = 0; i < 0x10000; ++i) {
        const double low = static_cast<double>(number(call.in[2 * i]));
        const double high = static_cast<double>(number(call.in[2 * i + 1]));
        const auto half = static_cast<std::uint16_t>(call.in[2 * i] >> 16);
        bool right = same_fp16(out[6 * i], to_fp16(low)) &&
                     same_bf16(out[6 * i + 1], to_bf16(low)) &&
                     same_float(out[6 * i + 2], bits(from_fp16(half))) &&
                     same_float(out[6 * i + 3], bits(from_bf16(half)));
        if (arch >= 80) {
            const unsigned fp16 = out[6 * i + 4];
            const unsigned bf16 = out[6 * i + 5];
            right = right && same_fp16(fp16 & 0xffff, to_fp16(low)) &&
                    same_fp16(fp16 >> 16, to_fp16(high)) &&
                    same_bf16(bf16 & 0xffff, to_bf16(low)) && same_bf16(bf16 >> 16, to_bf16(high));
        }
        wrong += right ? 0 : 1;
    }
    CHECK(wrong == 0);
}

void check_8_bits(const Run& run, int) {
    const Call call = call_of_pairs("to_8_bits", 4);
    const Words out = run(call);
    const auto e4m3 = [](unsigned code, double x) {
        return std::isnan(x) ? (code & 0x7f) == 0x7f : code == to_e4m3(x);
    };
    const auto e5m2 = [](unsigned code, double x) {
        return std::isnan(x) ? (code & 0x7f) > 0x7c : code == to_e5m2(x);
    };
    unsigned wrong = 0;
    for (std::size_t i = 0; i < 0x10000; ++i) {
        const double low = static_cast<double>(number(call.in[2 * i]));
        const double high = static_cast<double>(number(call.in[2 * i + 1]));
        const bool right = e4m3(out[4 * i] & 0xff, low) && e4m3(out[4 * i] >> 8, high) &&
                           e5m2(out[4 * i + 1] & 0xff, low) && e5m2(out[4 * i + 1] >> 8, high) &&
                           e4m3(out[4 * i + 2], low) && e5m2(out[4 * i + 3], low);
        wrong += right ? 0 : 1;
    }
    CHECK(wrong == 0);
}

void check_from_8_bits(const Run& run, int) {
    Call call{.kernel = "from_8_bits", .threads = 256};
    for (unsigned i = 0; i < 256; ++i)
        call.in.push_back(i | (i * 7 + 3) % 256 << 8 | (i * 31 + 100) % 256 << 16 |
                          (255 - i) << 24);
    call.out.assign(1024, 0);
    const Words out = run(call);
    for (std::size_t i = 0; i < 256; ++i) {
        for (unsigned half = 0; half < 4; ++half) {
            const auto code = static_cast<std::uint8_t>(call.in[i] >> 8 * half);
            const unsigned shift = half % 2 * 16;
            const unsigned e4m3 = out[4 * i + half / 2] >> shift & 0xffff;
            const unsigned e5m2 = out[4 * i + 2 + half / 2] >> shift & 0xffff;
            CHECK(same_fp16(e4m3, to_fp16(static_cast<double>(from_e4m3(code)))));
            CHECK(same_fp16(e5m2, to_fp16(static_cast<double>(from_e5m2(code)))));
        }
    }
}

void check_functions(const Run& run, int) {
    Call call{.kernel = "fast_functions", .threads = 256};
    for (int i = 0; i < 248; ++i) {
        const float x = std::ldexp(1.0f + static_cast<float>(i % 17) / 17.0f, i % 40 - 20);
        call.in.push_back(bits(i % 3 == 0 ? -x : x));
    }
    const float nan = std::nanf("");
    for (const float x : {0.0f, -0.0f, kInfinity, -kInfinity, 1.0f, nan, nan, -1000.0f})
        call.in.push_back(bits(x));
    call.out.assign(4 * 256, 0);
    const Words out = run(call);
    const auto close = [](float is, double expected) {
        if (std::isnan(expected)) return std::isnan(is);
        if (std::isinf(expected) || std::abs(expected) > 3.4e38) {
            return is == (expected > 0 ? kInfinity : -kInfinity);
        }
        if (std::abs(expected) < 1.2e-38) return std::abs(is) < 1.2e-38f;
        return std::abs(static_cast<double>(is) - expected) <= 1e-6 * std::abs(expected) + 1e-7;
    };
    for (std::size_t i = 0; i < 256; ++i) {
        const double x = static_cast<double>(number(call.in[i]));
        CAPTURE(x);
        CHECK(close(number(out[4 * i]), std::exp2(x)));
        CHECK(close(number(out[4 * i + 1]), std::log2(x)));
        CHECK(close(number(out[4 * i + 2]), 1.0 / x));
        const double other = static_cast<double>(number(call.in[i ^ 1]));
        const bool none = std::isnan(x) || std::isnan(other);
        CHECK(close(number(out[4 * i + 3]), none ? x + other : std::max(x, other)));
    }
}

void check_places(const Run& run, int) {
    Call call{.kernel = "places", .blocks = 5, .threads = 96, .shared_bytes = 96};
    for (unsigned i = 0; i < 5 * 96; ++i)
        call.in.push_back(i * 2654435761u);
    call.out.assign(4 * call.in.size(), 0);
    const Words out = run(call);
    for (unsigned i = 0; i < 5 * 96; ++i) {
        CHECK(out[4 * i] == call.in[i]);
        CHECK(out[4 * i + 1] == i / 96);
        CHECK(out[4 * i + 2] == i % 96);
        CHECK(out[4 * i + 3] == i % 96);
    }
}

// The counter goes through 0, 1... and back to 0, each block gets another number, and the last sees
// what all have written before they counted.
void check_counter(const Run& run, int) {
    constexpr unsigned kBlocks = 200;
    for (unsigned again = 1; again <= 20; ++again) {
        Call call{.kernel = "counted", .blocks = kBlocks};
        call.in = {again};
        call.out.assign(3 * kBlocks + 2, 0);
        call.out.back() = kOnes;
        const Words out = run(call);
        Words olds;
        for (unsigned i = 0; i < kBlocks; ++i)
            olds.push_back(out[3 * i + 2]);
        std::sort(olds.begin(), olds.end());
        for (unsigned i = 0; i < kBlocks; ++i)
            REQUIRE(olds[i] == i);
        CHECK(out[3 * kBlocks] == 0);
        CHECK(out[3 * kBlocks + 1] == 0);
    }
}

// Element (row, column) of matrix `matrix` is its number.
void check_ldmatrix(const Run& run, int) {
    Words in(128);
    const auto element = [](unsigned matrix, unsigned row, unsigned column) {
        return matrix * 1000 + row * 10 + column;
    };
    for (unsigned i = 0; i < 256; ++i)
        in[i / 2] |= element(i / 64, i / 8 % 8, i % 8) << 16 * (i % 2);
    for (const bool transposed : {false, true}) {
        Call call{.kernel = transposed ? "load_matrices<true>" : "load_matrices<false>",
                  .shared_bytes = 512};
        call.in = in;
        call.out.assign(128, 0);
        const Words out = run(call);
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned matrix = 0; matrix < 4; ++matrix) {
                const unsigned row = lane / 4;
                const unsigned pair = 2 * (lane % 4);
                const unsigned low =
                    transposed ? element(matrix, pair, row) : element(matrix, row, pair);
                const unsigned high =
                    transposed ? element(matrix, pair + 1, row) : element(matrix, row, pair + 1);
                CHECK(out[4 * lane + matrix] == (low | high << 16));
            }
        }
    }
}

// Small whole numbers: all sums are exact, and no two rows or columns are alike.
int small_number(unsigned row, unsigned k, unsigned seed) {
    return static_cast<int>((row * 7 + k * 5 + row * k * 3 + seed) % 9) - 4;
}

template <class Encode>
void check_product(const Run& run, const std::string& kernel, unsigned k_size, unsigned a_word,
                   const Encode& encode_a, const Encode& encode_b) {
    Call call{.kernel = kernel};
    call.in.assign(128 + 64, 0);
    const unsigned element_bits = 32 / a_word;
    for (unsigned row = 0; row < 16; ++row) {
        for (unsigned k = 0; k < k_size; ++k) {
            const unsigned at = row * k_size + k;
            call.in[at / a_word] |= encode_a(small_number(row, k, 1)) << at % a_word * element_bits;
            if (row >= 8) continue;
            call.in[128 + at / a_word] |= encode_b(small_number(row, k, 5))
                                          << at % a_word * element_bits;
        }
    }
    for (unsigned i = 0; i < 128; ++i)
        call.in.push_back(bits(static_cast<float>(i) - 50.0f));
    call.out.assign(128, 0);
    const Words out = run(call);
    for (unsigned row = 0; row < 16; ++row) {
        for (unsigned column = 0; column < 8; ++column) {
            int sum = static_cast<int>(row * 8 + column) - 50;
            for (unsigned k = 0; k < k_size; ++k)
                sum += small_number(row, k, 1) * small_number(column, k, 5);
            CHECK(number(out[row * 8 + column]) == static_cast<float>(sum));
        }
    }
}

using Encoding = std::function<unsigned(int)>;

void check_mma_16(const Run& run, int) {
    const Encoding bf16 = [](int x) { return unsigned{to_bf16(x)}; };
    const Encoding fp16 = [](int x) { return unsigned{to_fp16(x)}; };
    check_product(run, "multiply_16_bits<kBf16>", 16, 2, bf16, bf16);
    check_product(run, "multiply_16_bits<kFp16>", 16, 2, fp16, fp16);
}

void check_mma_8(const Run& run, int) {
    const Encoding e4m3 = [](int x) { return unsigned{to_e4m3(x)}; };
    const Encoding e5m2 = [](int x) { return unsigned{to_e5m2(x)}; };
    for (const bool a : {false, true}) {
        for (const bool b : {false, true}) {
            const auto name = [](bool wide) { return wide ? "kFp8E5m2" : "kFp8E4m3"; };
            check_product(run, std::string("multiply_8_bits<") + name(a) + ", " + name(b) + ">", 32,
                          4, a ? e5m2 : e4m3, b ? e5m2 : e4m3);
        }
    }
}

void check_copies(const Run& run, int) {
    constexpr unsigned kThreads = 128;
    Call call{.kernel = "copies", .threads = kThreads, .shared_bytes = kThreads * 48};
    for (unsigned i = 0; i < 12 * kThreads; ++i)
        call.in.push_back(i * 2654435761u + 1);
    call.out.assign(12 * kThreads, 0xabcdu);
    const Words out = run(call);
    for (unsigned i = 0; i < 12 * kThreads; ++i) {
        const unsigned thread = i / 12;
        const unsigned word = i % 12;
        unsigned expected = call.in[i];
        if (word < 4 || word == 8) {
            if (thread % 3 == 0) expected = 0;
        } else if (word < 8) {
            // So many of its four bytes are copied, and zeros stand for the others.
            const int left = static_cast<int>(thread % 17) - 4 * (static_cast<int>(word) - 4);
            if (left < 4) expected &= left <= 0 ? 0u : (1u << 8 * left) - 1;
        } else {
            expected = 0xabcdu;
        }
        REQUIRE(out[i] == expected);
    }
}

void check_groups(const Run& run, int) {
    constexpr unsigned kThreads = 64;
    constexpr unsigned kBlocks = 30;
    for (const int pending : {0, 1, 2, 5}) {
        Call call{.kernel = "groups_of_copies<" + std::to_string(pending) + ">",
                  .blocks = kBlocks,
                  .threads = kThreads,
                  .shared_bytes = 8 * kThreads * 16};
        for (unsigned i = 0; i < 8 * kBlocks * kThreads * 4; ++i)
            call.in.push_back(i * 2654435761u);
        call.out.assign(call.in.size(), kOnes);
        CHECK(run(call) == call.in);
    }
}

}  // namespace

const std::vector<Case>& cases() {
    static const std::vector<Case> all = [] {
        std::vector<Case> each = {
            {"16-bit formats", 75, &check_16_bits},
            {"8-bit formats", 75, &check_8_bits},
            {"functions of one instruction", 75, &check_functions},
            {"indices and shared addresses", 75, &check_places},
            {"a counter that orders memory", 75, &check_counter},
            {"ldmatrix", 80, &check_ldmatrix},
            {"mma of 16-bit formats", 80, &check_mma_16},
            {"cp.async", 80, &check_copies},
            {"groups of cp.async", 80, &check_groups},
            {"8-bit formats as fp16", 89, &check_from_8_bits},
            {"mma of 8-bit formats", 89, &check_mma_8},
        };
        each.insert(each.end(), hopper_cases().begin(), hopper_cases().end());
        each.insert(each.end(), tensor_copy_cases().begin(), tensor_copy_cases().end());
        return each;
    }();
    return all;
}

std::vector<std::string> kernels_of(int arch) {
    std::vector<std::string> names = {"to_16_bits", "to_8_bits", "fast_functions", "places",
                                      "counted"};
    if (arch >= 80) {
        names.insert(names.end(),
                     {"load_matrices<false>", "load_matrices<true>", "multiply_16_bits<kBf16>",
                      "multiply_16_bits<kFp16>", "copies", "groups_of_copies<0>",
                      "groups_of_copies<1>", "groups_of_copies<2>", "groups_of_copies<5>"});
    }
    if (arch >= 89) {
        names.insert(names.end(),
                     {"from_8_bits", "multiply_8_bits<kFp8E4m3, kFp8E4m3>",
                      "multiply_8_bits<kFp8E4m3, kFp8E5m2>", "multiply_8_bits<kFp8E5m2, kFp8E4m3>",
                      "multiply_8_bits<kFp8E5m2, kFp8E5m2>"});
    }
    for (std::string& name : hopper_kernels_of(arch))
        names.push_back(std::move(name));
    for (std::string& name : tensor_copy_kernels_of(arch))
        names.push_back(std::move(name));
    return names;
}

}  // namespace jitney::wrappers
