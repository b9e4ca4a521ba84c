#include "operations/rotary/fill.hpp"

namespace jitney {
namespace {

RotaryTensor make_tensor(const Tensor& x, const Tensor& out) noexcept {
    RotaryTensor tensor{};
    tensor.x_batch = x.strides[0];
    tensor.x_row = x.strides[1];
    tensor.x_head = x.strides[2];
    tensor.out_batch = out.strides[0];
    tensor.out_row = out.strides[1];
    tensor.out_head = out.strides[2];
    tensor.heads = static_cast<int>(x.shape[2]);
    return tensor;
}

}  // namespace

RotaryParams form_params(const RotaryArgs& args, const policy::RotaryProblem& problem,
                         const policy::RotaryChoice& choice) noexcept {
    RotaryParams params{};
    params.tensors[0] = make_tensor(args.q, args.q_out);
    if (args.k) params.tensors[1] = make_tensor(*args.k, *args.k_out);
    params.table_stride = args.cos.strides[0];
    params.table_rows = static_cast<int>(args.cos.shape[0]);
    if (args.positions) {
        const Tensor& positions = *args.positions;
        const bool per_request = positions.ndim == 2;
        params.positions_batch = per_request && positions.shape[0] != 1 ? positions.strides[0] : 0;
        params.positions_row = positions.strides[per_request ? 1 : 0];
        params.positions_are_64_bit = positions.dtype == DType::int64 ? 1 : 0;
    }
    params.length = static_cast<int>(args.q.shape[1]);
    params.tokens = problem.tokens;
    params.rotary_dim = problem.rotary_dim;
    params.head_dim = problem.in_place ? problem.rotary_dim : problem.head_dim;
    params.items = choice.items;
    params.heads_at_once = choice.heads_at_once;
    params.threads_a_token = choice.threads_a_token;
    params.tokens_a_block = choice.tokens_a_block;
    return params;
}

void set_addresses(RotaryParams& params, const RotaryArgs& args) noexcept {
    params.tensors[0].x = args.q.data;
    params.tensors[0].out = args.q_out.data;
    if (args.k) {
        params.tensors[1].x = args.k->data;
        params.tensors[1].out = args.k_out->data;
    }
    params.cos = static_cast<const float*>(args.cos.data);
    params.sin = static_cast<const float*>(args.sin.data);
    if (args.positions) params.positions = args.positions->data;
}

}  // namespace jitney
