// What a call of a linear layer on FP8 launches, forward or backward: casts, the update of the
// state, sums of columns and products, in this order, so that it is a product that last_run() tells
// of, if there is one. And what layers ask for with any number of rows: the catalogue that prewarm
// compiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "operations/fp8_gemm/choose.hpp"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/update.hpp"
#include "operations/fp8_quantize/choose.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

// Parts that have nothing to compute are left out.
struct Fp8LinearProblem {
    std::array<std::optional<Fp8QuantizeProblem>, 2> casts;
    bool casts_nothing = false;  // there is a cast of an empty tensor, whose numbers are written
    bool updates = false;
    std::optional<ColumnSumsProblem> sums;
    std::array<std::optional<Fp8GemmProblem>, 2> products;
    std::size_t code_bytes = 0;  // of codes that the call keeps for itself
};

bool has_no_rows(const Fp8LinearProblem& problem) noexcept;
// Whether all that moves several elements at once for `other` can do so for `problem`.
bool is_as_aligned(const Fp8LinearProblem& problem, const Fp8LinearProblem& other) noexcept;

// Device memory beside the tensors. The launches use the same, one after the other; codes lie
// behind it.
struct Fp8LinearWorkspace {
    std::size_t counter_bytes = 0;
    std::size_t launch_bytes = 0;
    std::size_t code_bytes = 0;

    std::size_t codes_at() const noexcept { return (launch_bytes + 15) / 16 * 16; }
    std::size_t data_bytes() const noexcept {
        return code_bytes == 0 ? launch_bytes : codes_at() + code_bytes;
    }
};

struct Fp8LinearChoice {
    std::array<std::optional<Fp8CastChoice>, 2> casts;
    bool casts_nothing = false;
    std::optional<Fp8UpdateChoice> update;
    std::optional<ColumnSumsChoice> sums;
    std::array<std::optional<Fp8GemmChoice>, 2> products;
    Fp8LinearWorkspace workspace;
};

// Every kernel that not all GPUs or shapes have, once, with the first reason why not; and the
// choice, where all of them are accepted.
// `forced` is the only kernel of products.
Ranking<Fp8LinearChoice> rank_fp8_linear(const Fp8LinearProblem& problem, const DeviceFacts& facts,
                                         std::optional<KernelId> forced = std::nullopt);

// The memory of that choice wherever the tensors will lie.
Fp8LinearWorkspace fp8_linear_workspace_anywhere(const Fp8LinearProblem& problem,
                                                 const Fp8LinearChoice& choice,
                                                 const DeviceFacts& facts);

struct Fp8LinearLayer {
    int format = 0;                 // a jitney::Format: of x, weight, y and their gradients
    int codes = 0;                  // of x and weight, e4m3 or e5m2
    int grad_codes = 0;             // of grad_y
    std::optional<int> bias;        // the format of its gradient; none: there is no bias
    bool dynamic = false;           // scaled by a tensor's own amax
    bool fast_accum = false;        // as of fp8_gemm
    bool backward = false;          // the gradients, too, and forward calls that save their codes
    std::int64_t out_features = 0;  // at least 1, as in_features
    std::int64_t in_features = 0;
};

struct RowRange {
    std::int64_t first = 1;  // at least 1
    std::int64_t last = 1;
};

// Of calls with so many rows, with all tensors contiguous and at multiples of 16 bytes, and of
// backward calls that want the gradient of x, of weight, or both. In the order in which a step asks
// for them; empty where the products can't run.
std::vector<Spec> fp8_linear_catalogue(const Fp8LinearLayer& layer, const RowRange& rows,
                                       const DeviceFacts& facts);

}  // namespace jitney::policy
