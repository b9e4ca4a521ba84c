// prewarm [ARCH]: compiles what a model of 32 query heads over 8 KV heads of 128 elements calls,
// for an architecture that need not be here (sm_90a unless it is named), and keeps it in the cache.
#include <jitney/error.hpp>
#include <jitney/explain.hpp>
#include <jitney/prewarm.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using jitney::DType, jitney::Tensor;

// Of one request: explain() needs the shapes, no memory.
Tensor shape(std::int64_t length, std::int64_t heads) {
    return Tensor::contiguous(nullptr, DType::bf16, {1, length, heads, 128});
}

std::string attention_spec(std::int64_t q_len, std::int64_t kv_len, std::string_view arch) {
    jitney::AttentionArgs args;
    args.q = args.out = shape(q_len, 32);
    args.k = args.v = shape(kv_len, 8);
    args.causal = true;
    return jitney::explain(args, arch).chosen;
}

std::string rotary_spec(std::int64_t length, std::string_view arch) {
    jitney::RotaryArgs args;
    args.q = args.q_out = shape(length, 32);
    args.k = args.k_out = shape(length, 8);
    args.cos = args.sin = Tensor::contiguous(nullptr, DType::fp32, {length, 64});
    args.style = jitney::RotaryStyle::half_split;
    return jitney::explain(args, arch).chosen;
}

const char* text_of(jitney::PrewarmStatus status) {
    switch (status) {
        case jitney::PrewarmStatus::compiled:
            return "compiled";
        case jitney::PrewarmStatus::cached:
            return "cached";
        case jitney::PrewarmStatus::failed:
            break;
    }
    return "failed";
}

int prewarm(std::string_view arch) {
    // A long prompt, a short one, and one token after another.
    const std::vector<std::string> specs = {attention_spec(4096, 4096, arch),
                                            attention_spec(64, 64, arch),
                                            attention_spec(1, 4096, arch), rotary_spec(4096, arch)};
    int failed = 0;
    for (const jitney::PrewarmEntry& entry : jitney::prewarm(specs)) {
        std::printf("%s %s (%.0f ms)\n", text_of(entry.status), entry.spec.c_str(),
                    entry.milliseconds);
        if (entry.status != jitney::PrewarmStatus::failed) continue;
        std::fprintf(stderr, "error: %s\n", entry.error.c_str());
        ++failed;
    }
    return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return prewarm(argc > 1 ? argv[1] : "sm_90a");
    } catch (const jitney::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 2;
    }
}
