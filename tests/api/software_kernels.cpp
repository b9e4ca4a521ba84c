#include "tests/api/software_kernels.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernel_sources/attention/params.h"
#include "kernel_sources/rotary/params.h"
#include "reference/attention.hpp"
#include "reference/rotary.hpp"

namespace jitney::tests {
namespace {

constexpr Device kCpu{DeviceType::cpu, 0};

int constant(std::string_view image, const std::string& name) {
    const std::string mark = "static constexpr int " + name + " = ";
    const std::size_t at = image.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("no constant " + name);
    return std::stoi(std::string(image.substr(at + mark.size(), 8)));
}

Tensor tensor_of(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                 std::initializer_list<std::int64_t> strides) {
    return Tensor::strided(const_cast<void*>(data), dtype, shape, strides, kCpu);
}

Tensor heads_of(const void* data, DType dtype, int batch, int length, int heads, int head_dim,
                const AttentionStrides& strides) {
    return tensor_of(data, dtype, {batch, length, heads, head_dim},
                     {strides.batch, strides.row, strides.head, 1});
}

void check_workspace(const AttentionParams& params) {
    if (params.splits == 1) return;
    if (params.partial_out == nullptr || params.partial_statistics == nullptr ||
        params.arrived == nullptr) {
        throw std::logic_error("splits without a workspace");
    }
    if (*params.arrived != 0) throw std::logic_error("a counter that is not zero");
}

void run_attention(std::string_view image, const AttentionParams& p) {
    check_workspace(p);
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const int head_dim = constant(image, "head_dim");
    const int heads = p.kv_heads * p.group;
    reference::Attention call;
    call.q = heads_of(p.q, dtype, p.batch, p.q_len, heads, head_dim, p.q_strides);
    call.k = heads_of(p.k, dtype, p.batch, p.kv_len, p.kv_heads, head_dim, p.k_strides);
    call.v = heads_of(p.v, dtype, p.batch, p.kv_len, p.kv_heads, head_dim, p.v_strides);
    call.out = heads_of(p.out, dtype, p.batch, p.q_len, heads, head_dim, p.out_strides);
    call.causal = constant(image, "causal") != 0;
    if (constant(image, "mask") != 0) {
        const AttentionStrides& s = p.mask_strides;
        call.mask = tensor_of(p.mask, DType::boolean, {p.batch, heads, p.q_len, p.kv_len},
                              {s.batch, s.head, s.row, 1});
    }
    if (p.lse != nullptr) {
        const AttentionStrides& s = p.lse_strides;
        call.lse =
            tensor_of(p.lse, DType::fp32, {p.batch, heads, p.q_len}, {s.batch, s.head, s.row});
    }
    call.scale = static_cast<double>(p.scale_log2) / std::numbers::log2e;
    reference::attention(call);
}

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

}  // namespace

void run_software_kernel(const char* image, void** parameters) {
    const std::string_view text = image;
    if (text.find("\"rotary/") != std::string_view::npos) {
        run_rotary(text, *static_cast<const RotaryParams*>(parameters[0]));
    } else {
        run_attention(text, *static_cast<const AttentionParams*>(parameters[0]));
    }
}

}  // namespace jitney::tests
