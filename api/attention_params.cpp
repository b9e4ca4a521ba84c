#include "api/attention_params.hpp"

#include <cmath>
#include <numbers>

namespace jitney {
namespace {

// Of [batch, length, heads, head_dim].
AttentionStrides strides_of(const Tensor& tensor) noexcept {
    return {tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

// Of [batch, heads, length].
AttentionStrides lse_strides(const Tensor& lse) noexcept {
    return {lse.strides[0], lse.strides[2], lse.strides[1]};
}

// 0 for dimensions that the mask lacks or broadcasts.
AttentionStrides mask_strides(const Tensor& mask) noexcept {
    const auto stride = [&mask](std::size_t dim) -> long long {
        return mask.shape[dim] == 1 ? 0 : mask.strides[dim];
    };
    switch (mask.ndim) {
        case 2:
            return {stride(0), 0, 0};
        case 3:
            return {stride(0), stride(1), 0};
        default:
            return {stride(0), stride(2), stride(1)};
    }
}

float scale_log2_of(const AttentionArgs& args, int head_dim) noexcept {
    const float scale = args.scale ? *args.scale : 1.0f / std::sqrt(static_cast<float>(head_dim));
    return scale * std::numbers::log2e_v<float>;
}

}  // namespace

AttentionParams make_params(const AttentionArgs& args, const policy::AttentionProblem& problem,
                            const policy::AttentionChoice& choice, void* scratch,
                            void* counters) noexcept {
    AttentionParams params{};
    params.q = args.q.data;
    params.k = args.k.data;
    params.v = args.v.data;
    params.out = args.out.data;
    params.q_strides = strides_of(args.q);
    params.k_strides = strides_of(args.k);
    params.v_strides = strides_of(args.v);
    params.out_strides = strides_of(args.out);
    if (args.lse) {
        params.lse = static_cast<float*>(args.lse->data);
        params.lse_strides = lse_strides(*args.lse);
    }
    if (args.mask) {
        params.mask = static_cast<const unsigned char*>(args.mask->data);
        params.mask_strides = mask_strides(*args.mask);
    }
    params.batch = problem.batch;
    params.q_len = problem.q_len;
    params.kv_len = problem.kv_len;
    params.kv_heads = problem.kv_heads;
    params.group = problem.group();
    params.row_tiles = choice.row_tiles;
    params.scale_log2 = scale_log2_of(args, problem.head_dim);
    params.splits = choice.splits;
    if (scratch != nullptr) {
        char* base = static_cast<char*>(scratch);
        params.partial_out = reinterpret_cast<float*>(base);
        params.partial_statistics = base + choice.workspace.partial_out_bytes;
        params.arrived = static_cast<unsigned*>(counters);
    }
    return params;
}

}  // namespace jitney
