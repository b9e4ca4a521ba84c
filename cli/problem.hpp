// The problems that explain and bench are asked about: shapes and options instead of tensors.
// attention_problem.hpp has that of attention.
#pragma once

#include <string>

#include "cli/arguments.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/rotary.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

// fp32, fp16 or bf16.
DType dtype_of(const std::string& format);

void add_format(CLI::App& command, std::string& format,
                const std::string& description = "Format of the tensors (bf16)");

// `meaning` names as many sizes as there must be. Throws Error.
void require_dims(const std::string& what, const Shape& shape, std::size_t dims,
                  const std::string& meaning);

// A contiguous tensor without memory. `what` is how a sentence calls it: "--q".
Tensor shaped(const std::string& what, const Shape& shape, DType dtype, Device device);

// How many elements of a head are rotated, 0 being all of them. Throws Error.
std::int64_t rotated_of(int rotary_dim, std::int64_t head_dim);

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

struct Fp8QuantizeProblem {
    Shape x;
    std::string format = "bf16";
    std::string out = "e4m3";
    bool transposed = false;  // alone
    bool both = false;
    bool amax = false;
    bool dynamic = false;

    void add_to(CLI::App& command);
    // The call, its pointers null.
    Fp8QuantizeArgs arguments(Device device) const;
};

// e4m3 or e5m2.
DType fp8_dtype_of(const std::string& format);
void add_fp8_format(CLI::App& command, const std::string& option, std::string& format);

struct Fp8GemmProblem {
    Shape a;
    Shape b;
    std::string format_a = "e4m3";
    std::string format_b = "e4m3";
    std::string out = "bf16";
    std::string bias = "none";
    std::string scales = "one";
    bool trans_a = false;
    bool trans_b = false;
    bool fast_accum = false;
    bool amax = false;

    void add_to(CLI::App& command);
    // The call, its pointers null.
    Fp8GemmArgs arguments(Device device) const;
};

// What a product of FP8 matrices may be written as.
DType product_dtype_of(const std::string& format);
void add_product_options(CLI::App& command, std::string& out, bool& trans_a, bool& trans_b,
                         bool& fast_accum);

RotaryStyle style_of(const std::string& style);
void add_style(CLI::App& command, std::string& style);

}  // namespace jitney::cli
