// What the wrappers of Hopper's instructions have to do.
#include <doctest/doctest.h>

#include <bit>

#include "operations/reference/numeric.hpp"
#include "tests/wrappers/cases.hpp"

namespace jitney::wrappers {
namespace {

using namespace reference;

Words counting(unsigned count) {
    Words words;
    for (unsigned i = 0; i < count; ++i)
        words.push_back(i * 2654435761u + 1);
    return words;
}

void check_stmatrix(const Run& run, int) {
    Call call{.kernel = "store_matrices", .shared_bytes = 512};
    call.in = counting(128);
    call.out.assign(128, 0);
    const Words out = run(call);
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
        for (unsigned row = 0; row < 8; ++row) {
            for (unsigned pair = 0; pair < 4; ++pair) {
                CHECK(out[(matrix * 8 + row) * 4 + pair] == call.in[4 * (row * 4 + pair) + matrix]);
            }
        }
    }
}

void check_phases(const Run& run, int) {
    Call call{.kernel = "phases", .threads = 1, .shared_bytes = 24};
    call.in = counting(4);
    call.out.assign(14, 7);
    Words expected = {0, 1, 0, 1, 1, 0, 1, 0, 0, 1};
    expected.insert(expected.end(), call.in.begin(), call.in.end());
    CHECK(run(call) == expected);
}

void check_bulk_stores(const Run& run, int) {
    constexpr unsigned kThreads = 64;
    Call call{.kernel = "bulk_stores", .threads = kThreads, .shared_bytes = 16 * kThreads + 8};
    call.in = counting(4 * kThreads);
    call.out.assign(6 * kThreads, 7);
    const Words out = run(call);
    for (unsigned i = 0; i < 4 * kThreads; ++i)
        REQUIRE(out[i] == call.in[i] + 1);
    for (unsigned i = 0; i < 2 * kThreads; ++i)
        REQUIRE(out[4 * kThreads + i] == call.in[i] + 2);
}

void check_named_barriers(const Run& run, int) {
    Call call{.kernel = "named_barriers", .threads = 128, .shared_bytes = 256};
    call.in = counting(64);
    call.out.assign(64, 7);
    const Words expected(call.in.rbegin(), call.in.rend());
    CHECK(run(call) == expected);
}

void check_clusters(const Run& run, int) {
    for (const unsigned blocks : {2u, 4u, 8u}) {
        Call call{.kernel = "clusters",
                  .blocks = 3 * blocks,
                  .threads = 32,
                  .cluster = blocks,
                  .shared_bytes = 8};
        call.in = {blocks};
        call.out.assign(std::size_t{2} * call.blocks, 7);
        const Words out = run(call);
        for (unsigned block = 0; block < call.blocks; ++block) {
            CHECK(out[2 * block] == block % blocks);
            CHECK(out[2 * block + 1] == 1);
        }
    }
}

void check_sends(const Run& run, int) {
    for (const unsigned blocks : {2u, 4u, 8u}) {
        Call call{.kernel = "sends_in_cluster",
                  .blocks = 2 * blocks,
                  .threads = 32,
                  .cluster = blocks,
                  .shared_bytes = 24};
        call.in = {blocks, 0x3f800001u, 0x40000100u, 0xc0110000u, 0x12345678u};
        call.out.assign(std::size_t{6} * call.blocks, 7);
        const Words out = run(call);
        for (unsigned block = 0; block < call.blocks; ++block) {
            const unsigned sender = (block % blocks + blocks - 1) % blocks;
            for (unsigned i = 0; i < 4; ++i)
                CHECK(out[6 * block + i] == call.in[1 + i] + sender);
            CHECK(out[6 * block + 4] == 0);
            CHECK(out[6 * block + 5] == 1);
        }
    }
}

void check_cluster_loads(const Run& run, int) {
    constexpr unsigned kThreads = 32;
    for (const unsigned blocks : {1u, 2u, 3u, 8u}) {
        Call call{.kernel = "cluster_loads",
                  .blocks = 2 * blocks,
                  .threads = kThreads,
                  .cluster = blocks,
                  .shared_bytes = 16 * kThreads};
        call.in = counting(4 * kThreads * call.blocks);
        call.out.assign(std::size_t{6} * kThreads * call.blocks, 7);
        const Words out = run(call);
        unsigned wrong = 0;
        for (unsigned own = 0; own < kThreads * call.blocks; ++own) {
            const unsigned block = own / kThreads;
            const unsigned next = block / blocks * blocks + (block + 1) % blocks;
            const unsigned from = 4 * (next * kThreads + own % kThreads);
            for (unsigned i = 0; i < 6; ++i)
                wrong += out[6 * own + i] == call.in[from + (i < 4 ? i : i - 2)] ? 0u : 1u;
        }
        CHECK(wrong == 0);
    }
}

void check_registers(const Run& run, int) {
    Call call{.kernel = "shares_of_registers", .threads = 384};
    call.in = counting(384);
    call.out.assign(384, 7);
    CHECK(run(call) == call.in);
}

// Small whole numbers: all sums are exact, and no two rows or columns are alike.
int small_number(unsigned row, unsigned k, unsigned seed) {
    return static_cast<int>((row * 7 + k * 5 + row * k * 3 + row / 8 * k + seed) % 9) - 4;
}

const std::vector<std::string> kProducts = {
    "kBf16, false, false, 0", "kBf16, false, false, 1",    "kBf16, false, false, 2",
    "kBf16, false, false, 3", "kBf16, false, true, 0",     "kBf16, false, true, 1",
    "kBf16, true, true, 2",   "kBf16, true, true, 3",      "kFp16, false, false, 1",
    "kFp16, true, true, 1",   "kFp8E4m3, false, false, 1", "kFp8E4m3, true, false, 2"};

void check_products(const Run& run, int) {
    constexpr unsigned kRows = 64;
    constexpr unsigned kColumns = 96;
    for (const std::string& product : kProducts) {
        INFO(product);
        const bool fp8 = product.starts_with("kFp8");
        const auto code = [&](int x) {
            if (fp8) return unsigned{to_e4m3(x)};
            return product.starts_with("kBf16") ? unsigned{to_bf16(x)} : unsigned{to_fp16(x)};
        };
        const unsigned a_word = fp8 ? 4 : 2;
        const unsigned depth = 16 * a_word;
        Call call{.kernel = "warpgroup_product<" + product + ">",
                  .threads = 128,
                  .shared_bytes = 32 * 1024};
        call.in.assign((kRows + kColumns) * 16, 0);
        for (unsigned row = 0; row < kRows + kColumns; ++row) {
            for (unsigned k = 0; k < depth; ++k) {
                const int x =
                    row < kRows ? small_number(row, k, 1) : small_number(row - kRows, k, 5);
                call.in[row * 16 + k / a_word] |= code(x) << k % a_word * (32 / a_word);
            }
        }
        call.out.assign(kRows * kColumns, 7);
        const Words out = run(call);
        unsigned wrong = 0;
        for (unsigned row = 0; row < kRows; ++row) {
            for (unsigned column = 0; column < kColumns; ++column) {
                int sum = 0;
                for (unsigned k = 0; k < depth; ++k)
                    sum += small_number(row, k, 1) * small_number(column, k, 5);
                wrong +=
                    std::bit_cast<float>(out[row * kColumns + column]) == static_cast<float>(sum)
                        ? 0u
                        : 1u;
            }
        }
        CHECK(wrong == 0);
    }
}

}  // namespace

const std::vector<Case>& hopper_cases() {
    static const std::vector<Case> all = {
        {"stmatrix", 90, &check_stmatrix},
        {"phases of a barrier that counts", 90, &check_phases},
        {"runs of bytes by the copy engine", 90, &check_bulk_stores},
        {"named barriers", 90, &check_named_barriers},
        {"clusters", 90, &check_clusters},
        {"words sent within a cluster", 90, &check_sends},
        {"loads from other blocks of a cluster", 90, &check_cluster_loads},
        {"setmaxnreg", 90, &check_registers, 90},
        {"wgmma", 90, &check_products, 90},
    };
    return all;
}

std::vector<std::string> hopper_kernels_of(int arch) {
    std::vector<std::string> names;
    if (arch >= 90) {
        names = {"store_matrices", "phases",           "bulk_stores",  "named_barriers",
                 "clusters",       "sends_in_cluster", "cluster_loads"};
    }
    if (arch == 90) {
        names.emplace_back("shares_of_registers");
        for (const std::string& product : kProducts)
            names.push_back("warpgroup_product<" + product + ">");
    }
    return names;
}

}  // namespace jitney::wrappers
