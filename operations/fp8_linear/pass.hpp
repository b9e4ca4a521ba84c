// What a forward or backward call of a linear layer runs: casts, the update of the state, sums and
// products, in this order, so that it is a product that last_run() tells of, if there is one.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>

#include "jitney/explain.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/workspace.hpp"
#include "kernel_sources/fp8/update_params.h"
#include "policy/device_facts.hpp"

namespace jitney {

// A cast, and the row of the state that it goes by where scaling is delayed; null: none.
struct Fp8LinearCast {
    Fp8QuantizeArgs args;
    float* state = nullptr;
};

struct Fp8LinearPass {
    std::array<std::optional<Fp8LinearCast>, 2> casts;
    std::optional<Fp8UpdateParams> update;
    std::array<std::optional<Fp8GemmArgs>, 2> products;
    struct ColumnSums {
        Tensor x;    // [rows, cols]
        Tensor out;  // [cols]
    };
    std::optional<ColumnSums> sums;
};

// Codes that a call keeps for itself; null: fewer.
using Fp8OwnCodes = std::array<Tensor*, 2>;

// How large a workspace of the caller's the pass needs, with codes of its own; 0 on the host.
std::size_t workspace_bytes(const Fp8LinearPass& pass, const Fp8OwnCodes& own,
                            const Device& device);
std::size_t workspace_bytes(const Fp8LinearPass& pass, const Fp8OwnCodes& own,
                            const policy::DeviceFacts& facts);

// What run_pass would launch.
ExplainedLaunches explain(const Fp8LinearPass& pass, const Fp8OwnCodes& own,
                          const policy::DeviceFacts& facts);

// Runs what `make` makes, once the addresses of the codes are known; before, it is called for the
// kernels alone. Everything is checked, loaded and allocated before the first launch: where this
// throws because of the call, nothing was launched or written.
void run_pass(const std::function<Fp8LinearPass()>& make, const Fp8OwnCodes& own,
              const Workspace& workspace, const Device& device, Stream stream);

}  // namespace jitney
