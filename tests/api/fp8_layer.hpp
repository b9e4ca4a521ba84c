// A linear layer on FP8 on host tensors, as its tests call it, and what it has to come near to.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "jitney/fp8_linear.hpp"
#include "tests/support/fp8_linear_problem.hpp"

namespace jitney::tests {

inline constexpr int kX = 0;
inline constexpr int kWeight = 1;
inline constexpr int kGradY = 2;

inline Tensor host(HostTensor& tensor) {
    return tensor.view();
}

inline float state_at(const Fp8LinearProblem& problem, int row, int column) {
    return static_cast<float>(problem.state.at({row, column}));
}
inline float multiplier(const Fp8LinearProblem& problem, int row) {
    return state_at(problem, row, 0);
}

inline void forward(Fp8LinearProblem& problem) {
    fp8_linear(problem.forward(host));
}
inline void backward(Fp8LinearProblem& problem) {
    fp8_linear_backward(problem.backward(host));
}

inline Fp8LinearProblem made(const Fp8LinearCase& test, std::uint64_t seed = 1) {
    Fp8LinearProblem problem(test);
    Random random(seed);
    problem.fill(random);
    fp8_state_reset(problem.state.view());
    return problem;
}

inline Fp8Recipe delayed(int history, int margin = 0, Fp8Amax amax = Fp8Amax::window) {
    Fp8Recipe recipe;
    recipe.history = history;
    recipe.margin = margin;
    recipe.amax = amax;
    return recipe;
}

inline Fp8Recipe dynamic(Fp8Formats formats = Fp8Formats::hybrid) {
    Fp8Recipe recipe;
    recipe.formats = formats;
    recipe.scaling = Fp8Scaling::dynamic;
    return recipe;
}

// Steps whose x has this amax; the multiplier of x after each.
inline std::vector<float> multipliers_after(const Fp8Recipe& recipe,
                                            const std::vector<double>& amaxes) {
    Fp8LinearCase test;
    test.recipe = recipe;
    test.dtype = DType::fp32;
    Fp8LinearProblem problem = made(test);
    std::vector<float> result;
    for (const double amax : amaxes) {
        problem.x.fill([](std::int64_t) { return 0.0; });
        problem.x.set(5, amax);
        forward(problem);
        result.push_back(multiplier(problem, kX));
    }
    return result;
}

struct Exact {
    HostTensor y;
    HostTensor grad_x;
    HostTensor grad_weight;
    HostTensor grad_bias;
};

// In double precision, without codes.
inline Exact exact(const Fp8LinearProblem& problem) {
    const Fp8LinearCase& test = problem.test;
    Exact result{HostTensor(DType::fp32, {test.rows, test.out}),
                 HostTensor(DType::fp32, {test.rows, test.in}),
                 HostTensor(DType::fp32, {test.out, test.in}), HostTensor(DType::fp32, {test.out})};
    const auto sum = [](std::int64_t count, const auto& term) {
        double total = 0;
        for (std::int64_t i = 0; i < count; ++i)
            total += term(i);
        return total;
    };
    for (std::int64_t r = 0; r < test.rows; ++r) {
        for (std::int64_t o = 0; o < test.out; ++o) {
            const double product = sum(test.in, [&](std::int64_t i) {
                return problem.x.at({r, i}) * problem.weight.at({o, i});
            });
            result.y.put({r, o}, product + (test.bias ? problem.bias.get(o) : 0.0));
        }
        for (std::int64_t i = 0; i < test.in; ++i) {
            result.grad_x.put({r, i}, sum(test.out, [&](std::int64_t o) {
                                  return problem.grad_y.at({r, o}) * problem.weight.at({o, i});
                              }));
        }
    }
    for (std::int64_t o = 0; o < test.out; ++o) {
        result.grad_bias.set(o, sum(test.rows, [&](std::int64_t r) {
                                 return problem.grad_y.at({r, o});
                             }));
        for (std::int64_t i = 0; i < test.in; ++i) {
            result.grad_weight.put({o, i}, sum(test.rows, [&](std::int64_t r) {
                                       return problem.grad_y.at({r, o}) * problem.x.at({r, i});
                                   }));
        }
    }
    return result;
}

}  // namespace jitney::tests
