// A linear layer whose weight is in FP8 already, with the tensors to run it on, and its result in
// fp64 of the very codes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jitney/fp8_linear.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

enum class WeightScales { one, channels, column, blocks };  // column: [out_features, 1]

struct Fp8InferenceCase {
    DType dtype = DType::bf16;
    DType weight = DType::fp8_e4m3;
    DType out = DType::bf16;
    WeightScales scales = WeightScales::channels;
    bool fixed = false;  // x has a scale that is given
    bool bias = false;
    DType bias_dtype = DType::bf16;
    bool fast_accum = false;
    std::vector<std::int64_t> shape{5, 48};  // of x
    std::int64_t out_features = 24;
    // Elements between rows.
    std::int64_t x_padding = 0;
    std::int64_t weight_padding = 0;
    std::int64_t y_padding = 0;

    std::int64_t in_features() const { return shape.back(); }
    std::int64_t rows() const;
    std::string text() const;
};

Fp8InferenceCase random_inference_case(Random& random, std::int64_t most_rows,
                                       std::int64_t most_features);

struct Fp8InferenceProblem {
    // Rows of x are of sizes so far apart that one scale for all of them would lose some.
    Fp8InferenceProblem(const Fp8InferenceCase& problem, Random& random);

    template <class View>
    Fp8LinearInferenceArgs args(const View& view) {
        Fp8LinearInferenceArgs args;
        args.x = view(x);
        args.weight = view(weight);
        args.weight_scale = view(weight_scale);
        if (test.fixed) args.x_scale = view(x_scale);
        if (test.bias) args.bias = view(bias);
        args.y = view(y);
        args.fast_accum = test.fast_accum;
        return args;
    }

    // The largest difference of y from the sums, in fp64, of what x is cast to and of what the
    // codes of weight stand for: relative to the size of what was added up, and to a step of y's
    // dtype. Tensor cores align what they add to the largest number and keep 14 bits of it: each
    // term loses up to 2^-13 of that, in either direction, so that the loss grows with the square
    // root of their number.
    enum class Sums { exact, of_14_bits };
    double error(Sums sums = Sums::exact) const;

    Fp8InferenceCase test;
    HostTensor x;
    HostTensor weight;
    HostTensor weight_scale;
    HostTensor x_scale;
    HostTensor bias;
    HostTensor y;
};

}  // namespace jitney::tests
