#include "cli/problem.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/errors.hpp"

namespace jitney::cli {

void add_format(CLI::App& command, std::string& format, const std::string& description) {
    add_word(command, "--format", format, {"fp32", "fp16", "bf16"}, description);
}

void require_dims(const std::string& what, const Shape& shape, std::size_t dims,
                  const std::string& meaning) {
    if (shape.size() != dims) {
        refuse(fmt::format("{} is {}, and must be {}", what, text_of_shape(shape), meaning));
    }
}

DType dtype_of(const std::string& format) {
    if (format == "fp32") return DType::fp32;
    return format == "fp16" ? DType::fp16 : DType::bf16;
}

Tensor shaped(const std::string& what, const Shape& shape, DType dtype, Device device) {
    if (shape.empty()) refuse(what + " is missing");
    return Tensor::contiguous(nullptr, dtype, shape, device);
}

void add_style(CLI::App& command, std::string& style) {
    add_word(command, "--style", style, {"interleaved", "half_split"},
             "Which elements are turned together (interleaved)");
}

RotaryStyle style_of(const std::string& style) {
    return style == "half_split" ? RotaryStyle::half_split : RotaryStyle::interleaved;
}

std::int64_t rotated_of(int rotary_dim, std::int64_t head_dim) {
    const std::int64_t rotated = rotary_dim != 0 ? rotary_dim : head_dim;
    if (rotated % 2 != 0 || rotated > head_dim) {
        refuse(fmt::format("the rotary dimension is {}, and must be even and at most head_dim, {}",
                           rotated, head_dim));
    }
    return rotated;
}

void RotaryProblem::add_to(CLI::App& command) {
    add_shape(command, "--q", q, "Shape of q: batch,length,heads,head_dim")->required();
    add_shape(command, "--k", k, "Shape of k, rotated in the same launch");
    add_format(command, format);
    add_style(command, style);
    add_integer(command, "--rotary-dim", rotary_dim, 2, 1 << 20,
                "Leading elements of each head that are rotated (all)");
}

RotaryArgs RotaryProblem::arguments(Device device) const {
    const std::string meaning = "batch,length,heads,head_dim";
    require_dims("--q", q, 4, meaning);
    if (!k.empty()) require_dims("--k", k, 4, meaning);
    const DType dtype = dtype_of(format);
    RotaryArgs args;
    args.q = shaped("--q", q, dtype, device);
    args.q_out = args.q;
    if (!k.empty()) args.k_out = args.k = shaped("--k", k, dtype, device);
    const std::int64_t rotated = rotated_of(rotary_dim, q[3]);
    args.cos = shaped("--q", {q[1], rotated / 2}, DType::fp32, device);
    args.sin = args.cos;
    args.style = style_of(style);
    return args;
}

DType fp8_dtype_of(const std::string& format) {
    return format == "e5m2" ? DType::fp8_e5m2 : DType::fp8_e4m3;
}

void add_fp8_format(CLI::App& command, const std::string& option, std::string& format) {
    add_word(command, option, format, {"e4m3", "e5m2"}, "Format of the codes (e4m3)");
}

void Fp8QuantizeProblem::add_to(CLI::App& command) {
    add_shape(command, "--x", x, "Shape of x: rows,cols, or any other")->required();
    add_format(command, format);
    add_fp8_format(command, "--out-format", out);
    command.add_flag("--transposed", transposed, "The codes transposed alone");
    command.add_flag("--both", both, "The codes both ways");
    command.add_flag("--amax", amax, "The largest |x|, too");
    command.add_flag("--dynamic", dynamic, "The multiplier made of x's own amax");
}

Fp8QuantizeArgs Fp8QuantizeProblem::arguments(Device device) const {
    if (transposed && both) {
        refuse(
            "--transposed asks for one form of the codes, and --both for two: leave one of them "
            "out");
    }
    const DType codes = fp8_dtype_of(out);
    Fp8QuantizeArgs args;
    args.x = shaped("--x", x, dtype_of(format), device);
    const std::int64_t cols = x.back();
    const std::int64_t rows = cols != 0 ? args.x.elements() / cols : 0;
    if (!transposed) args.out = shaped("--x", x, codes, device);
    if (transposed || both) args.out_transposed = shaped("--x", {cols, rows}, codes, device);
    if (amax) args.amax = shaped("--amax", {1}, DType::fp32, device);
    args.dynamic = dynamic;
    return args;
}

DType product_dtype_of(const std::string& format) {
    return format == "e4m3" || format == "e5m2" ? fp8_dtype_of(format) : dtype_of(format);
}

void add_product_options(CLI::App& command, std::string& out, bool& trans_a, bool& trans_b,
                         bool& fast_accum) {
    add_word(command, "--out", out, {"bf16", "fp16", "fp32", "e4m3", "e5m2"},
             "Format of the output (bf16)");
    command.add_flag("--trans-a", trans_a, "a is [k, m], not [m, k]");
    command.add_flag("--trans-b", trans_b, "b is [n, k], not [k, n]");
    command.add_flag("--fast-accum", fast_accum,
                     "Leave the sums to the tensor cores, where they are less exact than fp32");
}

void Fp8GemmProblem::add_to(CLI::App& command) {
    add_shape(command, "--a", a, "Shape of a: m,k")->required();
    add_shape(command, "--b", b, "Shape of b: k,n")->required();
    add_fp8_format(command, "--format-a", format_a);
    add_fp8_format(command, "--format-b", format_b);
    add_product_options(command, out, trans_a, trans_b, fast_accum);
    add_word(command, "--bias", bias, {"none", "bf16", "fp32"}, "Format of the bias (none)");
    add_word(command, "--scales", scales, {"one", "sides", "blocks"},
             "One number, one a row of a and a column of b, or blocks of 128 along k (one)");
    command.add_flag("--amax", amax, "With an output in FP8: its largest magnitude too");
}

Fp8GemmArgs Fp8GemmProblem::arguments(Device device) const {
    require_dims("--a", a, 2, trans_a ? "k,m" : "m,k");
    require_dims("--b", b, 2, trans_b ? "n,k" : "k,n");
    const auto number = [&device] { return shaped("a number", {1}, DType::fp32, device); };
    Fp8GemmArgs args;
    args.a = shaped("--a", a, fp8_dtype_of(format_a), device);
    args.b = shaped("--b", b, fp8_dtype_of(format_b), device);
    args.out =
        shaped("--out", {a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]}, product_dtype_of(out), device);
    const auto numbers = [&device](Shape shape) {
        return shaped("--scales", shape, DType::fp32, device);
    };
    const auto blocks = [](std::int64_t size) { return (size + 127) / 128; };
    const auto [m, n] = std::pair(args.out.shape[0], args.out.shape[1]);
    if (scales == "one") {
        args.dequant_scale = number();
    } else if (scales == "sides") {
        args.scale_a = numbers({m});
        args.scale_b = numbers({n});
    } else {
        const std::int64_t k = blocks(a[trans_a ? 0 : 1]);
        args.scale_a = numbers({m, k});
        args.scale_b = numbers({blocks(n), k});
    }
    if (bias != "none") args.bias = shaped("--bias", {args.out.shape[1]}, dtype_of(bias), device);
    if (size_of(args.out.dtype) == 1) args.out_multiplier = number();
    if (amax) args.amax = number();
    args.trans_a = trans_a;
    args.trans_b = trans_b;
    args.fast_accum = fast_accum;
    return args;
}

}  // namespace jitney::cli
