// The form of a linear layer beside its sizes, as prewarm --linear says it by options of explain.
#pragma once

#include <optional>
#include <string>

#include "jitney/fp8_linear.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct LinearForm {
    std::string codes;    // "e4m3", "e5m2" or "hybrid"; empty: hybrid
    std::string scaling;  // "delayed" or "dynamic"; empty: delayed
    std::string format;   // of the tensors; empty: bf16
    std::string bias;     // of the bias, "none" where there is none; empty: none
    bool fast_accum = false;

    void add_to(CLI::App& command);
    Fp8Recipe recipe() const;
    DType dtype() const;
    std::optional<DType> bias_dtype() const;
    // The first option that was given; empty: none.
    std::string given() const;
};

}  // namespace jitney::cli
