// Causal attention with its LSE. The tensors are in host memory here, so that the reference backend
// computes and no GPU is needed; on a GPU, the same function takes device pointers, Device{} and
// the stream.
#include <jitney/attention.hpp>
#include <jitney/backend.hpp>
#include <jitney/error.hpp>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

// [README
// Two requests of 16 tokens each, 8 query heads over 2 KV heads of 64 elements, bf16.
void attend(void* q, void* k, void* v, void* out, float* lse, jitney::Device device,
            jitney::Stream stream) {
    using jitney::DType, jitney::Tensor;
    jitney::AttentionArgs args;
    args.q = Tensor::contiguous(q, DType::bf16, {2, 16, 8, 64}, device);
    args.k = Tensor::contiguous(k, DType::bf16, {2, 16, 2, 64}, device);
    args.v = Tensor::contiguous(v, DType::bf16, {2, 16, 2, 64}, device);
    args.out = Tensor::contiguous(out, DType::bf16, {2, 16, 8, 64}, device);
    args.lse = Tensor::contiguous(lse, DType::fp32, {2, 8, 16}, device);  // optional
    args.causal = true;
    jitney::attention(args, stream);  // throws jitney::Error
}
// README]

namespace {

// Multiples of 1/16 within [-1, 1): their upper halves are their bf16.
std::vector<std::uint16_t> some_values(std::size_t count, unsigned seed) {
    std::vector<std::uint16_t> values;
    unsigned state = seed;
    while (values.size() < count) {
        state = state * 1664525u + 1013904223u;
        const float value = static_cast<float>(state >> 27) / 16.0f - 1.0f;
        values.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    }
    return values;
}

}  // namespace

int main() {
    std::vector<std::uint16_t> q = some_values(2 * 16 * 8 * 64, 1);
    std::vector<std::uint16_t> k = some_values(2 * 16 * 2 * 64, 2);
    std::vector<std::uint16_t> v = some_values(2 * 16 * 2 * 64, 3);
    std::vector<std::uint16_t> out(q.size());
    std::vector<float> lse(2 * 8 * 16);
    try {
        attend(q.data(), k.data(), v.data(), out.data(), lse.data(),
               jitney::Device{jitney::DeviceType::cpu, 0}, nullptr);
    } catch (const jitney::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
    std::printf("ran on: %s\n", jitney::last_run().c_str());
    std::printf("LSE of request 0, head 0:");
    for (std::size_t query = 0; query < 16; ++query)
        std::printf(" %.4f", static_cast<double>(lse[query]));
    std::printf("\n");
    return 0;
}
