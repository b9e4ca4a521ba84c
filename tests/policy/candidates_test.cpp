// Every rule rejects with its own sentence, and in the order of the rules.
#include "policy/candidates.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "operations/attention/choose.hpp"

namespace jitney::policy {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kGridLimit = " blocks, a grid has at most 2147483647";

const DeviceFacts kHopper = typical_facts({90, 'a'});

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
Lines lines(const AttentionProblem& problem, const DeviceFacts& facts = kHopper,
            std::optional<KernelId> forced = {}) {
    Lines result;
    for (const Candidate& candidate : rank_attention(problem, facts, forced)) {
        std::string line(info(candidate.kernel).name);
        CHECK(candidate.accepted() == reason_text(candidate).empty());
        if (!candidate.accepted()) line += ": " + reason_text(candidate);
        result.push_back(line);
    }
    return result;
}

TEST_CASE("the order of preference") {
    CHECK(lines(prefill()) == Lines{"attn_prefill_mma", "attn_decode_mma: q_len 1024 is above 64",
                                    "attn_prefill_scalar",
                                    "attn_decode_scalar: q_len 1024 is above 64"});
    CHECK(lines(decode()) == Lines{"attn_decode_mma", "attn_prefill_mma", "attn_decode_scalar",
                                   "attn_prefill_scalar"});
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
    DeviceFacts facts = kHopper;
    facts.shared_bytes_per_block = 1024;
    for (const std::string& line : lines(decode(), facts)) {
        CHECK(line.find(": needs ") != std::string::npos);
        CHECK(line.ends_with(" bytes of shared memory, a block here has 1024"));
    }
    // The sentence has the number that the launch would need.
    const Candidate candidate = rank_attention(prefill(), facts)[0];
    CHECK(candidate.a == attention_shared_bytes(choose_attention(prefill(), kHopper)->spec));
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
    CHECK(lines(decode(), kHopper, KernelId::attn_prefill_scalar) ==
          Lines{"attn_decode_mma" + why, "attn_prefill_mma" + why, "attn_decode_scalar" + why,
                "attn_prefill_scalar"});
    // The one that was has its own reason.
    CHECK(lines(prefill(), kHopper, KernelId::attn_decode_mma)[1] ==
          "attn_decode_mma: q_len 1024 is above 64");
    for (const std::string& line : lines(decode(), kHopper, KernelId::rotary_emb))
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
