// What explain says is what the call does.
#include "jitney/explain.hpp"

#include "jitney/backend.hpp"
#include "tests/api/bad_call.hpp"

namespace jitney::tests {
namespace {

AttentionArgs attention_args(std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                             DType dtype = DType::bf16) {
    AttentionArgs args;
    args.q = args.out = Tensor::contiguous(nullptr, dtype, {1, q_len, 32, head_dim});
    args.k = args.v = Tensor::contiguous(nullptr, dtype, {1, kv_len, 8, head_dim});
    args.causal = true;
    return args;
}

const ExplainedCandidate& candidate(const Explanation& explanation, const std::string& kernel) {
    for (const ExplainedCandidate& each : explanation.candidates) {
        if (each.kernel == kernel) return each;
    }
    FAIL("no candidate ", kernel);
    return explanation.candidates.front();
}

}  // namespace

TEST_CASE("a prefill on Hopper") {
    const Explanation e = explain(attention_args(4096, 4096, 128), "sm_90a");
    CHECK(e.arch == "sm_90a");
    CHECK(e.chosen.starts_with("attn_prefill_wgmma<head_dim=128,format=bf16,"));
    CHECK(e.chosen.ends_with("causal=1>@sm_90a"));
    CHECK(e.grid[0] == 132);  // blocks stay
    CHECK(e.block[0] == 384);
    CHECK(e.shared_bytes > 0);
    CHECK(e.splits == 1);
    CHECK(e.workspace_bytes == 65536);  // for a counter
    CHECK(e.candidates.size() == 6);
    CHECK(candidate(e, "attn_prefill_wgmma").accepted);
    CHECK(candidate(e, "attn_prefill_mma").accepted);
    CHECK_FALSE(candidate(e, "attn_decode_mma").accepted);
    CHECK(candidate(e, "attn_decode_mma").reason == "q_len 4096 is above 64");
}

TEST_CASE("a prefill that the copy engine can't walk through") {
    const auto why = [](const AttentionArgs& args) {
        return candidate(explain(args, "sm_90a"), "attn_prefill_wgmma").reason;
    };
    const std::string strides = "the tensor copy engine takes strides above 0 and below 2^40 bytes";
    AttentionArgs args = attention_args(200, 300, 64);
    CHECK(why(args) == "");
    args.k.strides[2] = 0;  // one head for all
    CHECK(why(args) == strides);
    args = attention_args(200, 300, 64);
    args.v.strides[1] = -args.v.strides[1];
    CHECK(why(args) == strides);
    // Where a dimension has one element its stride means nothing.
    args = attention_args(200, 300, 64);
    args.q.strides[0] = args.k.strides[0] = 0;
    CHECK(why(args) == "");
    args.q.strides[1] = std::int64_t{1} << 39;
    CHECK(why(args) == strides);
    args.q.strides[1] = (std::int64_t{1} << 39) - 8;
    CHECK(why(args) == "");
    args = attention_args(200, 300, 64);
    args.q.strides[2] = std::int64_t{1} << 33;  // 64 heads together reach 2^40 bytes
    CHECK(why(args) == strides);
    CHECK(explain(args, "sm_90a").chosen.starts_with("attn_prefill_mma<"));
    CHECK(why(attention_args(200, 0, 64)) == "");
}

TEST_CASE("a long decode splits the keys, and needs a workspace") {
    const Explanation e = explain(attention_args(1, 100000, 128), "sm_90a");
    CHECK(e.chosen.starts_with("attn_decode_cluster<"));
    CHECK(e.splits > 1);
    CHECK(e.workspace_bytes > 0);
}

TEST_CASE("an old GPU and an odd head_dim take the scalar kernels") {
    const Explanation old = explain(attention_args(100, 100, 64), "sm_75");
    CHECK(old.chosen.starts_with("attn_prefill_scalar<"));
    CHECK(candidate(old, "attn_prefill_mma").reason.find("sm_80") != std::string::npos);
    const Explanation odd = explain(attention_args(100, 100, 59), "sm_80");
    CHECK(odd.chosen.starts_with("attn_prefill_scalar<head_dim=59"));
    CHECK(candidate(odd, "attn_prefill_mma").reason == "head_dim 59 is not a multiple of 8");
}

TEST_CASE("nothing can run, or nothing has to") {
    const Explanation none = explain(attention_args(1, 1, 1024), "sm_90a");
    CHECK(none.chosen.empty());
    for (const ExplainedCandidate& each : none.candidates)
        CHECK_FALSE(each.accepted);
    const Explanation empty = explain(attention_args(0, 1, 64), "sm_90a");
    CHECK(empty.chosen.empty());
    CHECK(empty.candidates.empty());
}

TEST_CASE("a scope counts") {
    const Scope scope("attn_prefill_scalar");
    const Explanation e = explain(attention_args(1, 100, 64), "sm_90a");
    CHECK(e.chosen.starts_with("attn_prefill_scalar<"));
    CHECK(candidate(e, "attn_decode_mma").reason.find("by name") != std::string::npos);
}

TEST_CASE("rotary") {
    RotaryArgs args;
    args.q = Tensor::contiguous(nullptr, DType::bf16, {1, 16, 8, 64});
    args.q_out = args.q;
    args.cos = args.sin = Tensor::contiguous(nullptr, DType::fp32, {16, 32});
    const Explanation e = explain(args, "sm_80");
    CHECK(e.chosen == "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80");
    CHECK(e.candidates.size() == 1);
    CHECK(e.grid[0] > 0);
    CHECK(e.block[0] > 0);
    const Explanation old = explain(args, "sm_70");
    CHECK(old.chosen.empty());
    CHECK(candidate(old, "rotary_emb").reason.find("sm_75") != std::string::npos);
}

TEST_CASE("arguments and archs are checked") {
    using Bad = BadCall<AttentionArgs>;
    const AttentionArgs good = attention_args(4, 4, 64);
    check_refused(Bad{"shape", [](auto& a) { a.k.shape[0] = 2; }, {"k", "[2, 4, 8, 64]"}}, good,
                  [](const AttentionArgs& a) { explain(a, "sm_90a"); });
    check_refused(Bad{"arch", [](auto&) {}, {"'sm_9x'", "sm_90a"}}, good,
                  [](const AttentionArgs& a) { explain(a, "sm_9x"); });
    check_refused(Bad{"host tensors, no arch",
                      [](auto& a) {
                          for (Tensor* t : {&a.q, &a.k, &a.v, &a.out})
                              t->device = {DeviceType::cpu, 0};
                      },
                      {"name an arch"},
                      ErrorCode::no_device},
                  good, [](const AttentionArgs& a) { explain(a); });
}

}  // namespace jitney::tests
