// Rotary embedding.
#include "tests/api/software_launches.hpp"

#include "operations/rotary/reference.hpp"
#include "tests/api/software_tensors.hpp"

namespace jitney::tests {
namespace {

struct Turned {
    Tensor x;
    Tensor out;
};

Turned turned(const RotaryTensor& t, const RotaryParams& p, DType dtype) {
    const std::int64_t batch = p.tokens / p.length;
    return {tensor_of(t.x, dtype, {batch, p.length, t.heads, p.head_dim},
                      {t.x_batch, t.x_row, t.x_head, 1}),
            tensor_of(t.out, dtype, {batch, p.length, t.heads, p.head_dim},
                      {t.out_batch, t.out_row, t.out_head, 1})};
}

}  // namespace

void run_rotary(std::string_view image, const RotaryParams& p) {
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const Turned q = turned(p.tensors[0], p, dtype);
    reference::Rotary call;
    call.q = q.x;
    call.q_out = q.out;
    if (p.tensors[1].heads != 0) {
        const Turned k = turned(p.tensors[1], p, dtype);
        call.k = k.x;
        call.k_out = k.out;
    }
    call.cos = tensor_of(p.cos, DType::fp32, {p.table_rows, p.rotary_dim / 2}, {p.table_stride, 1});
    call.sin = tensor_of(p.sin, DType::fp32, {p.table_rows, p.rotary_dim / 2}, {p.table_stride, 1});
    if (p.positions != nullptr) {
        call.positions =
            tensor_of(p.positions, p.positions_are_64_bit != 0 ? DType::int64 : DType::int32,
                      {p.tokens / p.length, p.length}, {p.positions_batch, p.positions_row});
    }
    call.style = constant(image, "style") == 0 ? reference::RotaryStyle::interleaved
                                               : reference::RotaryStyle::half_split;
    reference::rotary(call);
}

}  // namespace jitney::tests
