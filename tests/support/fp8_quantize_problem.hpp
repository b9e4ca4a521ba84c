// A quantization problem, with the tensors to run it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jitney/fp8_quantize.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

struct Fp8QuantizeCase {
    DType dtype = DType::bf16;
    DType out = DType::fp8_e4m3;
    std::vector<std::int64_t> shape{5, 33};
    bool rows = true;
    bool transposed = false;
    bool amax = false;
    bool dynamic = false;
    bool scale = false;
    // Of several scales, which are dynamic and asked for: [rows] or [rows, 1], groups, blocks, one
    // column after the other where they are turned.
    Fp8Granularity granularity = Fp8Granularity::tensor;
    bool turned_scales = false;
    bool power_of_two = false;
    std::optional<double> state;             // the multiplier of a state, by which x is cast
    std::optional<double> multiplier = 1.0;  // none: it is left out, or where dynamic not asked for
    // Elements between rows.
    std::int64_t x_padding = 0;
    std::int64_t out_padding = 0;
    std::int64_t transposed_padding = 0;

    std::int64_t cols() const { return shape.back(); }
    std::int64_t row_count() const;
    // Asks for scales of that granularity, and for nothing else beside the codes.
    void ask_for(Fp8Granularity parts);
    std::vector<std::int64_t> scale_shape() const;
    std::string text() const;
};

struct Fp8QuantizeProblem {
    // x is of numbers of all magnitudes that the codes tell apart, zeros and ties among them.
    Fp8QuantizeProblem(const Fp8QuantizeCase& problem, Random& random);

    // The call, the tensors being what `view` makes of this problem's.
    template <class View>
    Fp8QuantizeArgs args(const View& view) {
        Fp8QuantizeArgs args;
        args.x = view(x);
        if (test.rows) args.out = view(out);
        if (test.transposed) args.out_transposed = view(out_transposed);
        if (test.multiplier) args.multiplier = view(multiplier);
        if (test.scale) args.scale = view(scale);
        if (test.amax) args.amax = view(amax);
        args.dynamic = test.dynamic;
        args.granularity = test.granularity;
        args.power_of_two = test.power_of_two;
        return args;
    }
    // Computes what is asked for.
    void run_reference();

    // Compares with what the reference makes of this problem: codes and numbers bit for bit, but
    // that any NaN equals any other. Empty where all is well.
    std::string difference(const Fp8QuantizeProblem& expected) const;

    Fp8QuantizeCase test;
    HostTensor x;
    HostTensor out;
    HostTensor out_transposed;
    HostTensor multiplier;
    HostTensor scale;
    HostTensor amax;
    HostTensor state;  // the first columns of a row
};

// All 65536 numbers of bf16 or fp16, in order.
HostTensor every_number(DType dtype);

// How many elements differ, where any NaN equals any other.
std::int64_t differing(const HostTensor& actual, const HostTensor& expected);

}  // namespace jitney::tests
