// The same attention with an option of the library and with a logits function that rebuilds it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "jitney/attention.hpp"
#include "tests/support/logits_functions.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {

// Scales, caps and slopes that are powers of two: whatever order the factors are multiplied in, no
// product of theirs is rounded, so that both ways give the same bits.
inline void set_option(ServingShape& shape, const std::string& option, Random& random) {
    shape.scale = 0.125;
    if (option == "softcap") shape.softcap = static_cast<double>(1 << random.integer(2, 5));
    if (option == "alibi") shape.alibi = true;
}

inline void make_slopes_exact(ServingProblem& problem) {
    if (!problem.shape.alibi) return;
    problem.at("alibi_slopes").fill([](std::int64_t head) {
        return 1.0 / static_cast<double>(std::int64_t{2} << head % 8);
    });
}

// Takes the option out of a call and puts the function in its place.
inline AttentionArgs rebuilt(AttentionArgs args, const std::string& option) {
    args.logits = logits_function(option);
    if (option == "softcap") {
        args.logits_values = {*args.softcap};
        args.softcap.reset();
    } else {
        args.logits_values = {static_cast<const void*>(args.alibi_slopes->data)};
        args.alibi_slopes.reset();
    }
    return args;
}

// What attention with the function "places" gives, by the definition: `step` 0.5, `offset` 4.
inline void places_by_definition(ServingProblem& problem, const HostTensor& bias) {
    const ServingShape& shape = problem.shape;
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        const std::int64_t kv_len = shape.kv_len(request);
        const std::int64_t q_len = shape.q_len(request);
        for (std::int64_t i = 0; i < q_len; ++i) {
            for (std::int64_t head = 0; head < shape.heads(); ++head) {
                std::vector<double> weights(static_cast<std::size_t>(kv_len), 0.0);
                double sum = 0.0;
                for (std::int64_t j = 0; j < kv_len; ++j) {
                    const std::int64_t place =
                        3 * request + 5 * head + 7 * i + 11 * j + kv_len - q_len;
                    if (place % 5 == 0 || !problem.sees(request, i, head, j)) continue;
                    double score = 0.0;
                    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                        score += problem.query(request, i, head, d) *
                                 problem.key(request, j, head / shape.group, d);
                    }
                    score = score * *shape.scale + 0.5 * static_cast<double>((place + 4) % 9) -
                            bias.get(j);
                    weights[static_cast<std::size_t>(j)] = std::exp(score);
                    sum += weights[static_cast<std::size_t>(j)];
                }
                for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                    double value = 0.0;
                    for (std::int64_t j = 0; j < kv_len; ++j) {
                        const double weight = weights[static_cast<std::size_t>(j)];
                        if (weight != 0.0) {
                            value +=
                                weight / sum * problem.value(request, j, head / shape.group, d);
                        }
                    }
                    problem.at("out").set(problem.out_index(request, i, head) + d, value);
                }
                problem.at("lse").set(problem.lse_index(request, i, head), std::log(sum));
            }
        }
    }
}

}  // namespace jitney::tests
