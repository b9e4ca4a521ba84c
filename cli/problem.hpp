// The problems that explain and bench are asked about: shapes and options instead of tensors.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "jitney/attention.hpp"
#include "jitney/rotary.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// fp32, fp16 or bf16.
DType dtype_of(const std::string& format);

// A contiguous tensor without memory. `what` is how a sentence calls it: "--q".
Tensor shaped(const std::string& what, const Shape& shape, DType dtype, Device device);

struct AttentionProblem {
    Shape q;
    Shape kv;  // q's where it is empty
    Shape mask;
    std::string format = "bf16";
    bool causal = false;

    void add_to(CLI::App& command);
    // The call, its pointers null.
    AttentionArgs arguments(Device device) const;
};

struct RotaryProblem {
    Shape q;
    Shape k;
    std::string format = "bf16";
    std::string style = "interleaved";
    int rotary_dim = 0;  // 0: all of head_dim

    void add_to(CLI::App& command);
    // The call, its pointers null.
    RotaryArgs arguments(Device device) const;
};

RotaryStyle style_of(const std::string& style);
void add_style(CLI::App& command, std::string& style);

}  // namespace jitney::cli
