// What linear layers on FP8 ask of the kernels, with any number of rows: the catalogue that prewarm
// compiles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney::policy {

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
