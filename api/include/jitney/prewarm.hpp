// Compiling ahead of the first call: no GPU is needed, only NVRTC.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/error.hpp"
#include "jitney/export.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

enum class PrewarmStatus { compiled, cached, failed };

struct PrewarmEntry {
    std::string spec;  // attn_prefill_mma<head_dim=128,...>@sm_90a
    PrewarmStatus status = PrewarmStatus::failed;
    double milliseconds = 0;  // of looking for it and of compiling it
    std::uint64_t bytes = 0;  // of the machine code
    std::string error;        // where it failed: one sentence
};

struct PrewarmOptions {
    int jobs = 0;  // compiles at a time; 0: as many as there are cores
    // Called after each entry, one call at a time, with how many are done of how many.
    std::function<void(const PrewarmEntry&, std::size_t done, std::size_t total)> progress;
};

// Compiles each specialization into the cache unless it is there. Entries come back in the order of
// the texts; one that fails does not stop the others. Throws Error only for jobs below 0, and for a
// text that is no specialization of a GPU's (sm_90a, not sm_90), or that names a logits function of
// which this process has made no LogitsFunction (logits.hpp), before anything is compiled.
JITNEY_API std::vector<PrewarmEntry> prewarm(std::span<const std::string> specs,
                                             const PrewarmOptions& options = {});

// Throws Error (invalid_argument), which says why, where the text is no specialization that a GPU
// would look for.
JITNEY_API void check_spec(std::string_view text);

// Linear layers on FP8 (fp8_linear.hpp) of one weight, with any number of rows.
struct Fp8LinearShape {
    std::int64_t out_features = 0;  // 1 to 2147418112, as in_features
    std::int64_t in_features = 0;
    std::int64_t first_rows = 1;     // of x: from so many, at least 1,
    std::int64_t last_rows = 8192;   // to so many, at most 1048576
    DType dtype = DType::bf16;       // of x, weight, y and their gradients: bf16, fp16 or fp32
    std::optional<DType> bias = {};  // bf16 or fp32, of the bias and its gradient; none: no bias
    Fp8Recipe recipe = {};
    bool fast_accum = false;
    bool backward = false;  // the gradients, too, and forward calls that save their codes
};

// The specializations that such calls ask for on `arch` ("sm_90a"; empty: the first GPU that is
// here): texts for prewarm(). Tensors are contiguous and 16-byte aligned. `multiprocessors` are the
// GPU's, by which tiles are chosen; 0: those of a common one of the arch. Throws Error
// (invalid_argument) where the shape or the arch can't be meant, or where no kernel of that arch
// multiplies FP8.
JITNEY_API std::vector<std::string> fp8_linear_specs(const Fp8LinearShape& shape,
                                                     std::string_view arch,
                                                     int multiprocessors = 0);

}  // namespace jitney
