#include "operations/fp8_gemm/choose.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/gemm_wgmma.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});
const DeviceFacts kAda = typical_facts({89, 0});

// As a linear layer multiplies: both operands along k.
Fp8GemmProblem linear(std::int64_t m, std::int64_t n, std::int64_t k) {
    Fp8GemmProblem problem;
    problem.a = problem.b = kFp8E4m3;
    problem.out = kBf16;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.trans_b = true;
    return problem;
}

Fp8GemmProblem random_problem(Random& random) {
    const auto size = [&random](std::int64_t most) {
        return random.chance(0.2) ? random.integer(1, 20) : random.integer(1, most);
    };
    Fp8GemmProblem problem = linear(size(9000), size(20000), size(20000));
    const auto fp8 = [&random] { return random.chance(0.5) ? kFp8E4m3 : kFp8E5m2; };
    problem.a = fp8();
    problem.b = fp8();
    problem.out = static_cast<int>(random.integer(kFp32, kFp8E5m2));
    problem.trans_a = random.chance(0.5);
    problem.trans_b = random.chance(0.5);
    problem.fast_accum = random.chance(0.5);
    problem.aligned = random.chance(0.8);
    problem.out_aligned = random.chance(0.8);
    problem.mapped = random.chance(0.95);
    problem.amax = problem.out >= kFp8E4m3 && random.chance(0.5);
    if (random.chance(0.05)) problem.k = 0;
    if (random.chance(0.3)) {
        problem.groups = random.integer(1, 300);
        problem.trans_a = false;
    }
    if (random.chance(0.4)) problem.scales = static_cast<int>(random.integer(0, kBlockScales));
    return problem;
}

// What fp8_gemm_mma runs.
Fp8GemmChoice by_mma(const Fp8GemmProblem& problem, const DeviceFacts& facts) {
    return rank_fp8_gemm(problem, facts, KernelId::fp8_gemm_mma).choice.value();
}

// And fp8_gemm_wgmma.
Fp8GemmChoice by_wgmma(const Fp8GemmProblem& problem) {
    return rank_fp8_gemm(problem, kHopper, KernelId::fp8_gemm_wgmma).choice.value();
}

// As many tiles of rows as there can be: each group that has rows may end in one of its own.
void check_rows(const Fp8GemmProblem& p, std::int64_t m_tiles, std::int64_t tile_m) {
    CHECK(m_tiles * tile_m >= p.m);
    const std::int64_t alone = std::min(p.groups, p.m);  // groups of one row, and the rest in one
    if (alone == 0) {
        CHECK((m_tiles - 1) * tile_m < p.m);
    } else {
        CHECK(m_tiles >= alone - 1 + (p.m - alone + tile_m) / tile_m);
        CHECK(m_tiles <= alone + p.m / tile_m);
    }
}

// Clusters cover the output: every tile once. Blocks stay, and no more come than SMs have room for,
// but where they divide K.
void check_clusters(const Fp8GemmProblem& p, const Fp8GemmChoice& choice) {
    const auto value = [&choice](std::string_view name) { return value_of(choice.spec, name); };
    check_rows(p, choice.m_tiles, value("tile_m"));
    CHECK(std::int64_t{choice.n_tiles} * value("tile_n") >= p.n);
    CHECK(std::int64_t{choice.n_tiles - 1} * value("tile_n") < p.n);
    const std::int64_t split_k = std::int64_t{choice.split_tiles} * kFp8WgmmaTileK;
    CHECK(choice.splits == value("splits"));
    CHECK(choice.splits * split_k >= p.k);
    CHECK((choice.splits - 1) * split_k < p.k);
    CHECK(choice.group >= 1);
    CHECK(choice.group <= choice.m_tiles);
    CHECK(choice.geometry.cluster[0] == static_cast<unsigned>(choice.splits));
    const auto tiles = std::int64_t{choice.m_tiles} * choice.n_tiles;
    CHECK(choice.geometry.grid[0] == (choice.splits > 1
                                          ? tiles * choice.splits
                                          : std::min<std::int64_t>(tiles, kHopper.sm_count)));
    CHECK(choice.geometry.programmatic);
    CHECK(choice.geometry.shared_bytes == shared_bytes(choice.spec));
    CHECK(choice.geometry.shared_bytes <= kHopper.shared_bytes_per_block);
    CHECK(choice.workspace.partial_bytes == 0);
    CHECK((choice.workspace.counter_bytes != 0) == p.amax);
    CHECK((value("promote") == 0) == (p.fast_accum && p.scales != kBlockScales));
    CHECK((value("pieces") == 0 || p.out_aligned));
}

// Blocks cover the output and K: every tile once, and no split without work.
void check_geometry(const Fp8GemmProblem& p, const Fp8GemmChoice& choice,
                    const DeviceFacts& facts) {
    const int tile_m = value_of(choice.spec, "tile_m");
    const int tile_n = value_of(choice.spec, "tile_n");
    const int tile_k = fp8_gemm_tile_k(tile_m, tile_n);
    check_rows(p, choice.m_tiles, tile_m);
    CHECK((p.groups == 0 || choice.splits == 1));
    CHECK(std::int64_t{choice.n_tiles} * tile_n >= p.n);
    CHECK(std::int64_t{choice.n_tiles - 1} * tile_n < p.n);
    const std::int64_t split_k = std::int64_t{choice.split_tiles} * tile_k;
    CHECK(choice.splits * split_k >= p.k);
    CHECK((choice.splits == 1 || (choice.splits - 1) * split_k < p.k));
    CHECK(choice.group >= 1);
    CHECK(choice.group <= choice.m_tiles);
    const auto blocks = std::int64_t{choice.m_tiles} * choice.n_tiles * choice.splits;
    CHECK(choice.geometry.grid[0] == blocks);
    CHECK(choice.geometry.shared_bytes <= facts.shared_bytes_per_block);
    const std::size_t partial = choice.splits == 1 ? 0
                                                   : static_cast<std::size_t>(blocks) * 4 *
                                                         static_cast<std::size_t>(tile_m) *
                                                         static_cast<std::size_t>(tile_n);
    CHECK(choice.workspace.partial_bytes == partial);
    CHECK((choice.workspace.counter_bytes == 0) == (choice.splits == 1 && !p.amax));
}

TEST_CASE("random products: every tile once, every k in one split, within the device's memory") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 3000; ++i) {
        const Fp8GemmProblem p = random_problem(random);
        const DeviceFacts facts = random.chance(0.5) ? kHopper : kAda;
        CAPTURE(p.m);
        CAPTURE(p.n);
        CAPTURE(p.k);
        const Fp8GemmChoice choice = rank_fp8_gemm(p, facts).choice.value();
        CAPTURE(text_of(choice.spec));
        CHECK(parse_spec(text_of(choice.spec)) == choice.spec);
        CHECK(value_of(choice.spec, "scales") == p.scales);
        if (choice.spec.kernel == KernelId::fp8_gemm_wgmma) {
            check_clusters(p, choice);
            check_geometry(p, by_mma(p, facts), facts);
        } else {
            check_geometry(p, choice, facts);
        }
        const std::vector<Spec> catalogue = fp8_gemm_catalogue(p, facts);
        CHECK(std::find(catalogue.begin(), catalogue.end(), choice.spec) != catalogue.end());
    }
}

TEST_CASE("what has no FP8 tensor cores says so") {
    for (const int arch : {75, 80, 86}) {
        const DeviceFacts facts = typical_facts({static_cast<std::uint16_t>(arch), 0});
        const Candidate candidate = rank_fp8_gemm(linear(64, 64, 64), facts).candidates.at(1);
        CHECK_FALSE(candidate.accepted());
        CHECK(reason_text(candidate) ==
              "FP8 tensor cores need sm_89 or newer, this is sm_" + std::to_string(arch));
        CHECK(fp8_gemm_catalogue(linear(64, 64, 64), facts).empty());
    }
}

TEST_CASE(
    "fragments are unpacked where the tensor cores take no FP8, and sums promoted where they do") {
    struct Expected {
        Arch arch;
        bool fast, unpack, promote;
    };
    for (const Expected& e :
         {Expected{{89, 0}, false, false, true}, Expected{{89, 0}, true, false, false},
          Expected{{90, 'a'}, false, true, false}, Expected{{90, 'a'}, true, true, false},
          Expected{{100, 0}, false, true, false}, Expected{{110, 0}, false, true, false},
          Expected{{120, 0}, false, false, true}, Expected{{121, 0}, true, false, false}}) {
        Fp8GemmProblem p = linear(4096, 4096, 4096);
        p.fast_accum = e.fast;
        const Spec spec = by_mma(p, typical_facts(e.arch)).spec;
        CAPTURE(text_of(spec));
        CHECK((value_of(spec, "unpack") != 0) == e.unpack);
        CHECK((value_of(spec, "promote") != 0) == e.promote);
    }
}

TEST_CASE("few rows take narrow tiles, many rows wide ones") {
    const auto tile = [](std::int64_t m, std::int64_t n, std::int64_t k) {
        const Spec spec = by_mma(linear(m, n, k), kHopper).spec;
        return std::pair(value_of(spec, "tile_m"), value_of(spec, "tile_n"));
    };
    CHECK(tile(1, 4096, 4096) == std::pair(16, 32));
    CHECK(tile(16, 4096, 4096) == std::pair(16, 32));
    CHECK(tile(16, 14336, 4096) == std::pair(16, 64));
    CHECK(tile(32, 4096, 4096) == std::pair(32, 32));
    CHECK(tile(64, 4096, 4096) == std::pair(64, 32));
    CHECK(tile(32, 14336, 4096) == std::pair(32, 128));
    CHECK(tile(64, 14336, 4096) == std::pair(64, 128));
    CHECK(tile(128, 4096, 4096) == std::pair(128, 32));
    CHECK(tile(128, 14336, 4096) == std::pair(128, 128));
    CHECK(tile(256, 4096, 4096) == std::pair(64, 128));
    CHECK(tile(384, 4096, 4096) == std::pair(64, 64));
    CHECK(tile(512, 4096, 4096) == std::pair(128, 128));
    CHECK(tile(128, 4096, 14336) == std::pair(64, 128));
    CHECK(tile(4096, 4096, 4096) == std::pair(128, 128));
    CHECK(tile(8192, 8192, 8192) == std::pair(128, 128));
    CHECK(text_of(by_mma(linear(4096, 4096, 4096), kHopper).spec) ==
          "fp8_gemm_mma<a=e4m3,b=e4m3,out=bf16,tile=128x128,stages=3,trans_a=0,trans_b=1,unpack=1>"
          "@sm_90a");
}

TEST_CASE("a transposed b of few columns is read in whole lines of memory") {
    Fp8GemmProblem p = linear(16, 4096, 4096);
    p.trans_b = false;
    for (const bool trans_a : {false, true}) {
        p.trans_a = trans_a;
        const Fp8GemmChoice choice = by_mma(p, kHopper);
        CHECK(value_of(choice.spec, "tile_n") == 128);
        CHECK(choice.splits > 1);
    }
    p.trans_b = true;
    CHECK(value_of(by_mma(p, kHopper).spec, "tile_n") == 32);
}

TEST_CASE("a long k is divided where tiles are few, and not where they are many") {
    CHECK(by_mma(linear(64, 4096, 16384), kHopper).splits > 1);
    CHECK(by_mma(linear(128, 128, 65536), kHopper).splits > 1);
    CHECK(by_mma(linear(8192, 8192, 8192), kHopper).splits == 1);
    CHECK(by_mma(linear(16, 4096, 64), kHopper).splits == 1);
}

TEST_CASE("only blocks that fill an SM begin before their predecessors end") {
    CHECK(by_mma(linear(16, 4096, 4096), kHopper).geometry.programmatic);
    CHECK(by_mma(linear(256, 4096, 4096), kHopper).geometry.programmatic);
    CHECK(by_mma(linear(64, 4096, 4096), kHopper).geometry.programmatic);
    CHECK_FALSE(by_mma(linear(384, 4096, 4096), kHopper).geometry.programmatic);
    CHECK_FALSE(by_mma(linear(512, 4096, 4096), kHopper).geometry.programmatic);
    CHECK_FALSE(by_mma(linear(16, 4096, 4096), kAda).geometry.programmatic);
}

TEST_CASE("rows that begin anywhere take a path of their own") {
    Fp8GemmProblem p = linear(100, 100, 333);
    p.aligned = false;
    CHECK(text_of(rank_fp8_gemm(p, kHopper).choice.value().spec) ==
          "fp8_gemm_mma<a=e4m3,b=e4m3,out=bf16,tile=64x64,stages=3,trans_a=0,trans_b=1,unpack=1,"
          "unaligned=1>@sm_90a");
}

TEST_CASE("a grid that is too large is refused with its tiles") {
    const Candidate candidate =
        rank_fp8_gemm(linear(0x7fffffff, 0x7fffffff, 1), kAda).candidates.at(1);
    CHECK_FALSE(candidate.accepted());
    CHECK(candidate.reason == Reason::too_many_tiles);
    // Each kernel has its own tiles.
    for (const Candidate& each :
         rank_fp8_gemm(linear(0x7fffffff, 0x7fffffff, 1), kHopper).candidates)
        CHECK(each.reason == Reason::too_many_tiles);
}

TEST_CASE("Hopper's own kernel takes what the copy engine can, and says what it can't") {
    const auto reason = [](const Fp8GemmProblem& p, const DeviceFacts& facts) {
        const Ranking<Fp8GemmChoice> ranking = rank_fp8_gemm(p, facts);
        REQUIRE(ranking.candidates.size() == 2);
        REQUIRE(ranking.candidates[0].kernel == KernelId::fp8_gemm_wgmma);
        // The other takes it.
        CHECK(ranking.candidates[1].accepted());
        const bool accepted = ranking.candidates[0].accepted();
        CHECK((ranking.choice.value().spec.kernel == KernelId::fp8_gemm_wgmma) == accepted);
        return reason_text(ranking.candidates[0]);
    };
    const Fp8GemmProblem good = linear(100, 200, 300);
    CHECK(reason(good, kHopper).empty());
    CHECK(reason(good, kAda) == "needs sm_90a, this is sm_89");
    CHECK(reason(good, typical_facts({100, 0})) == "needs sm_90a, this is sm_100");
    Fp8GemmProblem p = good;
    p.trans_a = true;
    CHECK(reason(p, kHopper) == "takes a as [m, k] and b as [n, k]");
    p = good;
    p.trans_b = false;
    CHECK(reason(p, kHopper) == "takes a as [m, k] and b as [n, k]");
    p = good;
    p.k = 0;
    CHECK(reason(p, kHopper) == "there is nothing to multiply: k is 0");
    p = good;
    p.aligned = false;
    CHECK(reason(p, kHopper) == "every row of a and b must begin at a multiple of 16 bytes");
    p = good;
    p.mapped = false;
    CHECK(reason(p, kHopper) ==
          "the tensor copy engine takes strides above 0 and below 2^40 bytes");
    p = good;
    p.out_aligned = false;
    CHECK(reason(p, kHopper).empty());
}

TEST_CASE("a kernel that is named is the only one") {
    const Fp8GemmProblem p = linear(100, 200, 300);
    const auto ranking = rank_fp8_gemm(p, kHopper, KernelId::fp8_gemm_mma);
    CHECK(ranking.candidates.at(0).reason == Reason::not_forced);
    CHECK(ranking.choice.value().spec.kernel == KernelId::fp8_gemm_mma);
    CHECK_FALSE(rank_fp8_gemm(p, kAda, KernelId::fp8_gemm_wgmma).choice);
}

TEST_CASE("tiles on Hopper: few rows are columns, and many rows have wide tiles") {
    const auto tile = [](std::int64_t m, std::int64_t n, std::int64_t k) {
        const Spec spec = by_wgmma(linear(m, n, k)).spec;
        const bool swap = value_of(spec, "swap") != 0;
        return std::to_string(value_of(spec, "tile_m")) + "x" +
               std::to_string(value_of(spec, "tile_n")) + (swap ? " swapped" : "") + " in " +
               std::to_string(value_of(spec, "splits"));
    };
    CHECK(tile(1, 4096, 4096) == "16x64 swapped in 2");
    CHECK(tile(16, 4096, 4096) == "16x64 swapped in 2");
    CHECK(tile(16, 14336, 4096) == "16x64 swapped in 1");
    CHECK(tile(192, 4096, 4096) == "64x128 in 1");
    CHECK(tile(4096, 4096, 4096) == "128x128 in 1");
    CHECK(tile(8192, 8192, 8192) == "128x192 in 1");
}

TEST_CASE("every shape of a tile on Hopper is one that its kernel can be") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 300; ++i) {
        Fp8GemmProblem p = random_problem(random);
        p.trans_a = false;
        p.trans_b = true;
        for (const Spec& spec : fp8_gemm_catalogue(p, kHopper)) {
            CAPTURE(text_of(spec));
            CHECK(parse_spec(text_of(spec)) == spec);
            CHECK(shared_bytes(spec) <= kHopper.shared_bytes_per_block);
        }
    }
}

}  // namespace
}  // namespace jitney::policy
