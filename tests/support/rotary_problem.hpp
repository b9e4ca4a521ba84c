// A rotary problem, with the tensors to run it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jitney/rotary.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

// None; or [length] or [batch, length], in int32 or int64.
enum class Positions { none, shared_32, shared_64, each_32, each_64 };

struct RotaryCase {
    DType dtype = DType::bf16;
    RotaryStyle style = RotaryStyle::interleaved;
    std::int64_t batch = 2;
    std::int64_t length = 17;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 2;  // 0: no k
    std::int64_t head_dim = 64;
    std::int64_t rotary_dim = 64;
    Positions positions = Positions::none;
    bool in_place = false;
    Layout layout = {};
    std::int64_t table_padding = 0;

    std::string text() const;
};

// Where the case is in place, q_out and k_out are what is rotated.
struct RotaryProblem {
    RotaryProblem(const RotaryCase& problem, Random& random);

    // Computes q_out and k_out.
    void run_reference();

    static constexpr std::int64_t rows = 40;  // of the tables
    RotaryCase test;
    HostTensor q;
    HostTensor k;
    HostTensor q_out;
    HostTensor k_out;
    HostTensor cos;
    HostTensor sin;
    std::optional<HostTensor> positions;
};

// A rotary style as the call names it, the public one or the reference's.
template <class Style>
Style style_as(RotaryStyle style) {
    return style == RotaryStyle::interleaved ? Style::interleaved : Style::half_split;
}

// The call, public or the reference's, with these tensors: a problem's own, or copies of them under
// the same names.
template <class Args, class Tensors>
Args rotary_call(const RotaryCase& test, Tensors& tensors) {
    Args args;
    args.q = test.in_place ? tensors.q_out.view() : tensors.q.view();
    args.q_out = tensors.q_out.view();
    if (test.kv_heads > 0) {
        args.k = test.in_place ? tensors.k_out.view() : tensors.k.view();
        args.k_out = tensors.k_out.view();
    }
    args.cos = tensors.cos.view();
    args.sin = tensors.sin.view();
    if (tensors.positions) args.positions = tensors.positions->view();
    args.style = style_as<decltype(args.style)>(test.style);
    return args;
}

// What a kernel of this format may be off by.
Tolerance rotary_tolerance(DType dtype);

}  // namespace jitney::tests
