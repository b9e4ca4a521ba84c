// What a program does with an installed Jitney: a call on host tensors, an Error caught across the
// library's boundary, and an answer of the policy.
#include <jitney/attention.hpp>
#include <jitney/backend.hpp>
#include <jitney/error.hpp>
#include <jitney/explain.hpp>

int main() {
    using jitney::Tensor;
    float values[6] = {1, 2, 3, 4, 5, 6};
    float out[6] = {};
    const jitney::Device cpu{jitney::DeviceType::cpu, 0};
    jitney::AttentionArgs args;
    args.q = args.k = args.v = Tensor::contiguous(values, jitney::DType::fp32, {1, 3, 1, 2}, cpu);
    args.out = Tensor::contiguous(out, jitney::DType::fp32, {1, 3, 1, 2}, cpu);
    args.causal = true;
    jitney::attention(args);
    // The first query sees the first key alone.
    if (out[0] != 1 || out[1] != 2 || jitney::last_run() != "reference") return 1;

    if (jitney::explain(args, "sm_90a").chosen.empty()) return 2;

    args.scale = -1.0f;
    try {
        jitney::attention(args);
        return 3;
    } catch (const jitney::Error& error) {
        return error.code() == jitney::ErrorCode::invalid_argument ? 0 : 4;
    }
}
