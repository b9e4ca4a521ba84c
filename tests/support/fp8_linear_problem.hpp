// A linear layer on FP8 with its tensors.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "jitney/fp8_linear.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

struct Fp8LinearCase {
    std::int64_t rows = 24;
    std::int64_t in = 40;
    std::int64_t out = 17;
    DType dtype = DType::bf16;
    Fp8Recipe recipe = {};
    bool bias = true;
    bool saved = true;

    DType forward_format() const {
        return recipe.formats == Fp8Formats::e5m2 ? DType::fp8_e5m2 : DType::fp8_e4m3;
    }
};

struct Fp8LinearProblem {
    explicit Fp8LinearProblem(const Fp8LinearCase& problem)
        : test(problem),
          x(test.dtype, {test.rows, test.in}),
          weight(test.dtype, {test.out, test.in}),
          bias(DType::fp32, {test.out}),
          y(test.dtype, {test.rows, test.out}),
          x_codes(test.forward_format(), {test.rows, test.in}),
          weight_codes(test.forward_format(), {test.out, test.in}),
          scales(DType::fp32, {2}),
          grad_y(test.dtype, {test.rows, test.out}),
          grad_x(test.dtype, {test.rows, test.in}),
          grad_weight(DType::fp32, {test.out, test.in}),
          grad_bias(DType::fp32, {test.out}),
          state(DType::fp32, {3, fp8_state_columns(test.recipe)}) {}

    void fill(Random& random) {
        x.fill_normal(random);
        weight.fill_normal(random, 0.1);
        bias.fill_normal(random);
        grad_y.fill_normal(random, 0.01);
    }

    template <class View>
    Fp8LinearSaved saved(const View& view) {
        return {view(x_codes), view(weight_codes), view(scales)};
    }
    template <class View>
    Fp8LinearArgs forward(const View& view) {
        Fp8LinearArgs args;
        args.x = view(x);
        args.weight = view(weight);
        if (test.bias) args.bias = view(bias);
        args.y = view(y);
        args.state = view(state);
        if (test.saved) args.saved = saved(view);
        args.recipe = test.recipe;
        return args;
    }
    template <class View>
    Fp8LinearBackwardArgs backward(const View& view) {
        Fp8LinearBackwardArgs args;
        args.grad_y = view(grad_y);
        args.saved = saved(view);
        args.grad_x = view(grad_x);
        args.grad_weight = view(grad_weight);
        args.grad_bias = view(grad_bias);
        args.state = view(state);
        args.recipe = test.recipe;
        return args;
    }

    Fp8LinearCase test;
    HostTensor x;
    HostTensor weight;
    HostTensor bias;
    HostTensor y;
    HostTensor x_codes;
    HostTensor weight_codes;
    HostTensor scales;
    HostTensor grad_y;
    HostTensor grad_x;
    HostTensor grad_weight;
    HostTensor grad_bias;
    HostTensor state;
};

// |a - b| / |b| over all elements.
inline double relative_error(const HostTensor& a, const HostTensor& b) {
    double difference = 0;
    double norm = 0;
    for (std::int64_t i = 0; i < b.elements(); ++i) {
        difference += (a.get(i) - b.get(i)) * (a.get(i) - b.get(i));
        norm += b.get(i) * b.get(i);
    }
    return std::sqrt(difference / norm);
}

}  // namespace jitney::tests
