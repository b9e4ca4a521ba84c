// The calls that launch.cpp times: small ones, of a few blocks, so that the host sets the pace.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <vector>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/merge_states.hpp"
#include "jitney/rotary.hpp"
#include "runtime/driver.hpp"

namespace jitney::bench {

// Of the GPU, zeros.
class Memory {
  public:
    explicit Memory(std::size_t bytes) {
        runtime::check(runtime::driver().cuMemAlloc(&address_, bytes), "cuMemAlloc");
        runtime::check(runtime::driver().cuMemsetD8Async(address_, 0, bytes, nullptr),
                       "cuMemsetD8Async");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { runtime::driver().cuMemFree(address_); }
    void* data() const { return reinterpret_cast<void*>(address_); }

  private:
    CUdeviceptr address_ = 0;
};

// Tensors of zeros, kept until the end.
class Tensors {
  public:
    Tensor make(DType dtype, std::initializer_list<std::int64_t> shape) {
        Tensor tensor = Tensor::contiguous(nullptr, dtype, shape);
        const auto bytes = static_cast<std::size_t>(tensor.elements() * size_of(dtype));
        all_.push_back(std::make_unique<Memory>(bytes));
        tensor.data = all_.back()->data();
        return tensor;
    }

  private:
    std::vector<std::unique_ptr<Memory>> all_;
};

inline AttentionArgs attention_call(Tensors& tensors, std::int64_t q_len, std::int64_t kv_len) {
    AttentionArgs args;
    args.q = tensors.make(DType::bf16, {1, q_len, 8, 64});
    args.out = tensors.make(DType::bf16, {1, q_len, 8, 64});
    args.k = args.v = tensors.make(DType::bf16, {1, kv_len, 2, 64});
    args.causal = true;
    return args;
}

inline RotaryArgs rotary_call(Tensors& tensors) {
    RotaryArgs args;
    args.q = args.q_out = tensors.make(DType::bf16, {1, 16, 8, 64});
    args.k = args.k_out = tensors.make(DType::bf16, {1, 16, 2, 64});
    args.cos = args.sin = tensors.make(DType::fp32, {16, 32});
    return args;
}

inline AppendKvArgs append_call(Tensors& tensors) {
    AppendKvArgs args;
    args.new_k = tensors.make(DType::bf16, {4, 1, 2, 64});
    args.new_v = tensors.make(DType::bf16, {4, 1, 2, 64});
    args.k = tensors.make(DType::bf16, {4, 64, 2, 64});
    args.v = tensors.make(DType::bf16, {4, 64, 2, 64});
    return args;
}

inline MergeStatesArgs merge_call(Tensors& tensors, std::array<PartialState, 2>& parts) {
    for (PartialState& part : parts) {
        part = {tensors.make(DType::bf16, {4, 1, 8, 64}), tensors.make(DType::fp32, {4, 8, 1})};
    }
    MergeStatesArgs args;
    args.parts = parts;
    args.out = tensors.make(DType::bf16, {4, 1, 8, 64});
    return args;
}

inline Fp8QuantizeArgs cast_call(Tensors& tensors, bool dynamic) {
    Fp8QuantizeArgs args;
    args.x = tensors.make(DType::bf16, {16, 4096});
    args.out = tensors.make(DType::fp8_e4m3, {16, 4096});
    args.multiplier = tensors.make(DType::fp32, {1});
    args.dynamic = dynamic;
    return args;
}

inline Fp8GemmArgs product_call(Tensors& tensors) {
    Fp8GemmArgs args;
    args.a = tensors.make(DType::fp8_e4m3, {16, 1024});
    args.b = tensors.make(DType::fp8_e4m3, {1024, 1024});
    args.out = tensors.make(DType::bf16, {16, 1024});
    args.dequant_scale = tensors.make(DType::fp32, {1});
    args.trans_b = true;
    return args;
}

inline Fp8LinearArgs linear_call(Tensors& tensors) {
    Fp8LinearArgs args;
    args.x = tensors.make(DType::bf16, {16, 512});
    args.weight = tensors.make(DType::bf16, {512, 512});
    args.y = tensors.make(DType::bf16, {16, 512});
    args.state = tensors.make(DType::fp32, {3, fp8_state_columns(args.recipe)});
    args.saved = {tensors.make(DType::fp8_e4m3, {16, 512}),
                  tensors.make(DType::fp8_e4m3, {512, 512}), tensors.make(DType::fp32, {2})};
    return args;
}

inline Fp8LinearBackwardArgs backward_call(Tensors& tensors, const Fp8LinearArgs& forward) {
    Fp8LinearBackwardArgs args;
    args.grad_y = tensors.make(DType::bf16, {16, 512});
    args.saved = *forward.saved;
    args.grad_x = tensors.make(DType::bf16, {16, 512});
    args.grad_weight = tensors.make(DType::bf16, {512, 512});
    args.state = forward.state;
    return args;
}

}  // namespace jitney::bench
