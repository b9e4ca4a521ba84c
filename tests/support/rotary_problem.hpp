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

// What a kernel of this format may be off by.
Tolerance rotary_tolerance(DType dtype);

}  // namespace jitney::tests
