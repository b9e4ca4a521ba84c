// Every rule rejects with its own sentence, and in the order of the rules.
#include "policy/candidates.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "operations/attention/choose.hpp"

namespace jitney::policy {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kGridLimit = " blocks, a grid has at most 2147483647";

const DeviceFacts kHopper = typical_facts({90, 'a'});
const DeviceFacts kOther = typical_facts({100, 0});

AttentionProblem prefill() {
    AttentionProblem problem;
    problem.format = kBf16;
    problem.batch = 1;
    problem.q_len = 1024;
    problem.kv_len = 1024;
    problem.q_heads = 32;
    problem.kv_heads = 8;
    problem.head_dim = 128;
    return problem;
}

AttentionProblem decode() {
    AttentionProblem problem = prefill();
    problem.q_len = 1;
    return problem;
}

// "kernel: reason", or the kernel alone where it was accepted.
std::string line_of(const Candidate& candidate) {
    CHECK(candidate.accepted() == reason_text(candidate).empty());
    std::string line(info(candidate.kernel).name);
    if (!candidate.accepted()) line += ": " + reason_text(candidate);
    return line;
}

Lines all_lines(const AttentionProblem& problem, const DeviceFacts& facts) {
    Lines result;
    for (const Candidate& candidate : rank_attention(problem, facts).candidates)
        result.push_back(line_of(candidate));
    return result;
}

// Without the kernels of Hopper alone.
Lines lines(const AttentionProblem& problem, const DeviceFacts& facts = kOther,
            std::optional<KernelId> forced = {}) {
    Lines result;
    for (const Candidate& candidate : rank_attention(problem, facts, forced).candidates) {
        if (info(candidate.kernel).exact_arch.number != 0) continue;
        result.push_back(line_of(candidate));
    }
    return result;
}

std::string wgmma_line(const AttentionProblem& problem, const DeviceFacts& facts = kHopper) {
    for (const Candidate& candidate : rank_attention(problem, facts).candidates) {
        if (candidate.kernel == KernelId::attn_prefill_wgmma) return line_of(candidate);
    }
    return "none";
}

TEST_CASE("the order of preference") {
    CHECK(lines(prefill()) == Lines{"attn_prefill_mma", "attn_decode_mma: q_len 1024 is above 64",
                                    "attn_prefill_scalar",
                                    "attn_decode_scalar: q_len 1024 is above 64"});
    CHECK(lines(decode()) == Lines{"attn_decode_mma", "attn_prefill_mma", "attn_decode_scalar",
                                   "attn_prefill_scalar"});
}

TEST_CASE("the order of preference on Hopper") {
    CHECK(all_lines(prefill(), kHopper) == Lines{"attn_prefill_wgmma", "attn_prefill_mma",
                                                 "attn_decode_cluster: q_len 1024 is above 64",
                                                 "attn_decode_mma: q_len 1024 is above 64",
                                                 "attn_prefill_scalar",
                                                 "attn_decode_scalar: q_len 1024 is above 64"});
    CHECK(all_lines(decode(), kHopper) == Lines{"attn_decode_cluster", "attn_decode_mma",
                                                "attn_prefill_mma", "attn_prefill_wgmma",
                                                "attn_decode_scalar", "attn_prefill_scalar"});
    // Four heads share a tile of 128 rows, or five none.
    AttentionProblem problem = prefill();
    for (const auto& [q_heads, q_len, first] :
         {std::tuple{32, 32, "attn_prefill_wgmma"}, std::tuple{32, 31, "attn_prefill_mma"},
          std::tuple{40, 128, "attn_prefill_wgmma"}, std::tuple{40, 127, "attn_prefill_mma"}}) {
        problem.q_heads = q_heads;
        problem.q_len = q_len;
        CHECK(all_lines(problem, kHopper)[0] == first);
    }
    // Ragged requests however few queries they have, but not where heads have tiles of their own.
    problem = prefill();
    problem.packed = true;
    problem.batch = 16;
    problem.q_len = 1;
    CHECK(all_lines(problem, kHopper)[0] == "attn_prefill_wgmma");
    // Over pages up to eight queries of four heads are decoded.
    problem.paged = true;
    for (const auto& [total, first] :
         {std::pair{1, "attn_decode_cluster"}, std::pair{16 * 8, "attn_decode_cluster"},
          std::pair{16 * 8 + 1, "attn_prefill_wgmma"}}) {
        problem.q_len = total;
        CHECK(all_lines(problem, kHopper)[0] == first);
    }
    problem.paged = false;
    problem.q_heads = 40;
    for (const auto& [total, first] :
         {std::pair{16 * 128, "attn_prefill_wgmma"}, std::pair{16 * 128 - 1, "attn_prefill_mma"}}) {
        problem.q_len = total;
        CHECK(all_lines(problem, kHopper)[0] == first);
    }
    // Where requests may not have any influence on each other, their mean length does not count.
    problem.batch_invariant = true;
    problem.q_len = 16 * 128;
    CHECK(all_lines(problem, kHopper)[0] == "attn_prefill_mma");
    problem.q_heads = 32;
    for (const int total : {1, 16 * 128}) {
        problem.q_len = total;
        CHECK(all_lines(problem, kHopper)[0] == "attn_prefill_wgmma");
    }
}

TEST_CASE("what the kernel of Hopper alone does not take") {
    const std::string name = "attn_prefill_wgmma";
    const auto refused = [&](auto change) {
        AttentionProblem problem = prefill();
        change(problem);
        return wgmma_line(problem).substr(name.size());
    };
    using P = AttentionProblem;
    CHECK(refused([](P&) {}).empty());
    for (const Arch arch : {Arch{80, 0}, Arch{90, 0}, Arch{100, 0}, Arch{120, 0}}) {
        CHECK(wgmma_line(prefill(), typical_facts(arch)) ==
              name + ": needs sm_90a, this is sm_" + std::to_string(arch.number));
    }
    CHECK(refused([](P& p) { p.format = kFp32; }) ==
          ": the tensor cores take bf16 and fp16, not fp32");
    CHECK(refused([](P& p) { p.format = kFp8E4m3; }) == ": takes fp16, bf16, not e4m3");
    CHECK(refused([](P& p) { p.head_dim = 100; }) == ": head_dim 100 is not a multiple of 8");
    CHECK(refused([](P& p) { p.head_dim = 264; }) == ": head_dim 264 is above 256");
    CHECK(refused([](P& p) { p.aligned = false; }) ==
          ": pointers must be 16-byte aligned and strides multiples of 8 elements");
    CHECK(refused([](P& p) { p.mapped = false; }) ==
          ": the tensor copy engine takes strides above 0 and below 2^40 bytes");
    for (bool P::*option : {&P::packed, &P::paged, &P::mask})
        CHECK(refused([option](P& p) { p.*option = true; }).empty());
    CHECK(refused([](P& p) { p.logits = 1; }).empty());
    const auto masked = [&](int head_dim, int keys) {
        return refused([=](P& p) {
            p.head_dim = head_dim;
            p.mask = true;
            p.mask_sizes.keys = keys;
        });
    };
    CHECK(masked(128, 262144).empty());
    CHECK(masked(128, 262145) == ": the mask has 262145 keys, more than 262144");
    CHECK(masked(256, 131073) == ": the mask has 131073 keys, more than 131072");
    CHECK(refused([](P& p) { p.append = true; }) ==
          ": does not append: write the new keys and values to the cache before the call");
    CHECK(refused([](P& p) { p.kv_len = 2147418113; }) ==
          ": kv_len 2147418113 is above 2147418112");
    CHECK(refused([](P& p) {
              p.batch = 1 << 30;
              p.q_len = 128;
          }) == ": needs 4 times 8589934592 tiles, above 2130706432");
    // What it takes beside the plain call.
    CHECK(refused([](P& p) {
              p.causal = p.window = p.softcap = p.alibi = p.sinks = p.batch_invariant = true;
              p.kv_len = 0;
              p.q_heads = 24;  // three of a KV head
          }).empty());
    for (int head_dim = 8; head_dim <= 256; head_dim += 8)
        CHECK(refused([&](P& p) { p.head_dim = head_dim; }).empty());
}

TEST_CASE("an arch that is too old") {
    CHECK(lines(decode(), typical_facts({75, 0})) ==
          Lines{"attn_decode_mma: needs sm_80 or newer, this is sm_75",
                "attn_prefill_mma: needs sm_80 or newer, this is sm_75", "attn_decode_scalar",
                "attn_prefill_scalar"});
    CHECK(lines(decode(), typical_facts({70, 0}))[2] ==
          "attn_decode_scalar: needs sm_75 or newer, this is sm_70");
}

TEST_CASE("formats") {
    AttentionProblem problem = decode();
    problem.format = kFp32;
    CHECK(lines(problem) == Lines{"attn_decode_mma: the tensor cores take bf16 and fp16, not fp32",
                                  "attn_prefill_mma: the tensor cores take bf16 and fp16, not fp32",
                                  "attn_decode_scalar", "attn_prefill_scalar"});
    problem.format = kFp8E4m3;
    CHECK(lines(problem) == Lines{"attn_decode_mma: takes fp16, bf16, not e4m3",
                                  "attn_prefill_mma: takes fp16, bf16, not e4m3",
                                  "attn_decode_scalar: takes fp32, fp16, bf16, not e4m3",
                                  "attn_prefill_scalar: takes fp32, fp16, bf16, not e4m3"});
    for (const int format : {-1, 5, 7, 31, 32, 1000}) {
        problem.format = format;
        CHECK(lines(problem)[2] == "attn_decode_scalar: takes fp32, fp16, bf16, not other types");
    }
}

TEST_CASE("head dimensions") {
    AttentionProblem problem = decode();
    problem.head_dim = 100;
    CHECK(lines(problem) == Lines{"attn_decode_mma: head_dim 100 is not a multiple of 8",
                                  "attn_prefill_mma: head_dim 100 is not a multiple of 8",
                                  "attn_decode_scalar", "attn_prefill_scalar"});
    problem.head_dim = 264;
    CHECK(lines(problem) == Lines{"attn_decode_mma: head_dim 264 is above 256",
                                  "attn_prefill_mma: head_dim 264 is above 256",
                                  "attn_decode_scalar", "attn_prefill_scalar"});
    problem.head_dim = 520;
    CHECK(lines(problem) == Lines{"attn_decode_mma: head_dim 520 is above 256",
                                  "attn_prefill_mma: head_dim 520 is above 256",
                                  "attn_decode_scalar: head_dim 520 is above 512",
                                  "attn_prefill_scalar: head_dim 520 is above 512"});
    problem.head_dim = 2147483647;
    CHECK(lines(problem)[2] == "attn_decode_scalar: head_dim 2147483647 is above 512");
}

TEST_CASE("alignment") {
    AttentionProblem problem = decode();
    problem.aligned = false;
    const std::string why =
        ": pointers must be 16-byte aligned and strides multiples of 8 elements";
    CHECK(lines(problem) == Lines{"attn_decode_mma" + why, "attn_prefill_mma" + why,
                                  "attn_decode_scalar", "attn_prefill_scalar"});
}

TEST_CASE("too many queries for decode") {
    AttentionProblem problem = prefill();
    problem.q_len = 64;
    CHECK(lines(problem)[1] == "attn_decode_mma");
    problem.q_len = 65;
    CHECK(lines(problem)[1] == "attn_decode_mma: q_len 65 is above 64");
}

TEST_CASE("shared memory") {
    DeviceFacts facts = kOther;
    facts.shared_bytes_per_block = 1024;
    for (const std::string& line : lines(decode(), facts)) {
        CHECK(line.find(": needs ") != std::string::npos);
        CHECK(line.ends_with(" bytes of shared memory, a block here has 1024"));
    }
    // The sentence has the number that the launch would need.
    const Candidate candidate = rank_attention(prefill(), facts).candidates[1];
    CHECK(candidate.a == shared_bytes(choose_attention(prefill(), kOther)->spec));
}

TEST_CASE("more blocks, rows or keys than the kernels count") {
    AttentionProblem problem = decode();
    problem.batch = 1 << 28;
    for (const std::string& line : lines(problem))
        CHECK(line.ends_with(": needs 2147483648" + std::string(kGridLimit)));
    problem.batch = (1 << 28) - 1;
    CHECK(lines(problem)[0] == "attn_decode_mma");

    problem = prefill();
    problem.q_len = 2147483647;
    CHECK(lines(problem)[0] ==
          "attn_prefill_mma: q_len times the queries of a KV head is 8589934588, above 2147418112");
    problem.q_heads = 8;
    problem.kv_heads = 8;
    problem.q_len = 2147418113;
    CHECK(lines(problem)[0] ==
          "attn_prefill_mma: q_len times the queries of a KV head is 2147418113, above 2147418112");
    problem.q_len = 2147418112;
    CHECK(lines(problem)[0] == "attn_prefill_mma");

    problem = decode();
    problem.kv_len = 2147418113;
    for (const std::string& line : lines(problem))
        CHECK(line.ends_with(": kv_len 2147418113 is above 2147418112"));
    problem.kv_len = 2147418112;
    CHECK(lines(problem)[0] == "attn_decode_mma");
}

TEST_CASE("products past 64 bits are above every limit") {
    AttentionProblem problem;
    problem.format = kBf16;
    problem.batch = 2147483647;
    problem.q_len = 65536;
    problem.kv_len = 1;
    problem.q_heads = 2147483647;
    problem.kv_heads = 2147483647;
    problem.head_dim = 128;
    CHECK(lines(problem)[0] ==
          "attn_prefill_mma: needs 9223372036854775807" + std::string(kGridLimit));
    CHECK(!choose_attention(problem, kHopper));
}

TEST_CASE("kernels that were not asked for") {
    const std::string why = ": another kernel was asked for by name";
    CHECK(lines(decode(), kOther, KernelId::attn_prefill_scalar) ==
          Lines{"attn_decode_mma" + why, "attn_prefill_mma" + why, "attn_decode_scalar" + why,
                "attn_prefill_scalar"});
    // The one that was has its own reason.
    CHECK(lines(prefill(), kOther, KernelId::attn_decode_mma)[1] ==
          "attn_decode_mma: q_len 1024 is above 64");
    for (const std::string& line : lines(decode(), kOther, KernelId::rotary_emb))
        CHECK(line.ends_with(why));
}

TEST_CASE("of several reasons the one that a person would mend first") {
    AttentionProblem problem = prefill();
    problem.format = kFp32;
    problem.head_dim = 1001;
    problem.aligned = false;
    CHECK(lines(problem, typical_facts({75, 0}))[0] ==
          "attn_prefill_mma: needs sm_80 or newer, this is sm_75");
    CHECK(lines(problem)[0] == "attn_prefill_mma: the tensor cores take bf16 and fp16, not fp32");
    problem.format = kBf16;
    CHECK(lines(problem)[0] == "attn_prefill_mma: head_dim 1001 is not a multiple of 8");
    problem.head_dim = 1000;
    CHECK(lines(problem)[0] == "attn_prefill_mma: head_dim 1000 is above 256");
    CHECK(lines(problem)[1] == "attn_decode_mma: head_dim 1000 is above 256");
}

}  // namespace
}  // namespace jitney::policy
