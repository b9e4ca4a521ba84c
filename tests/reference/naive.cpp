#include "tests/reference/naive.hpp"

#include <cmath>
#include <limits>

namespace jitney::tests {

namespace {

bool sees(const AttentionProblem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
          std::int64_t j) {
    const AttentionShape& s = problem.shape;
    if (s.causal && j > i + (s.kv_len - s.q_len)) return false;
    switch (s.mask) {
        case MaskKind::none:
            return true;
        case MaskKind::keys:
            return problem.mask->at({b, j}) != 0.0;
        case MaskKind::queries:
            return problem.mask->at({b, i, j}) != 0.0;
        case MaskKind::shared_heads:
            return problem.mask->at({b, 0, i, j}) != 0.0;
        case MaskKind::heads:
            return problem.mask->at({b, h, i, j}) != 0.0;
        case MaskKind::one_batch:
            return problem.mask->at({0, h, i, j}) != 0.0;
    }
    return false;
}

}  // namespace

NaiveResult naive_attention(const AttentionProblem& problem) {
    const AttentionShape& s = problem.shape;
    NaiveResult result{HostTensor(DType::fp32, problem.out.shape()),
                       HostTensor(DType::fp32, problem.lse.shape())};
    const std::int64_t group = s.q_heads / s.kv_heads;
    const long double scale = s.scale ? static_cast<long double>(*s.scale)
                                      : 1.0L / std::sqrt(static_cast<long double>(s.head_dim));
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t h = 0; h < s.q_heads; ++h) {
            for (std::int64_t i = 0; i < s.q_len; ++i) {
                std::vector<long double> scores;
                std::vector<std::int64_t> keys;
                for (std::int64_t j = 0; j < s.kv_len; ++j) {
                    if (!sees(problem, b, h, i, j)) continue;
                    long double dot = 0.0L;
                    for (std::int64_t d = 0; d < s.head_dim; ++d) {
                        dot += static_cast<long double>(problem.q.at({b, i, h, d})) *
                               static_cast<long double>(problem.k.at({b, j, h / group, d}));
                    }
                    scores.push_back(dot * scale);
                    keys.push_back(j);
                }
                long double largest = -std::numeric_limits<long double>::infinity();
                for (const long double score : scores)
                    largest = std::max(largest, score);
                long double sum = 0.0L;
                for (long double& score : scores)
                    sum += score = std::exp(score - largest);
                for (std::int64_t d = 0; d < s.head_dim; ++d) {
                    long double value = 0.0L;
                    for (std::size_t n = 0; n < keys.size(); ++n) {
                        value += scores[n] / sum *
                                 static_cast<long double>(problem.v.at({b, keys[n], h / group, d}));
                    }
                    result.out.put({b, i, h, d}, static_cast<double>(value));
                }
                result.lse.put({b, h, i}, keys.empty()
                                              ? -std::numeric_limits<double>::infinity()
                                              : static_cast<double>(largest + std::log(sum)));
            }
        }
    }
    return result;
}

}  // namespace jitney::tests
