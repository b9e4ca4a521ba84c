#include "operations/attention/reference_core.hpp"

#include <array>

namespace jitney::reference {

// The loops run over keys and over value elements, never along a sum, so that the compiler may
// vectorise them without changing the order of any addition.
void score_keys(const double* query, const double* keys, std::int64_t head_dim, std::int64_t pitch,
                std::int64_t count, double scale, double* scores) {
    std::fill_n(scores, count, 0.0);
    std::int64_t d = 0;
    for (; d + 4 <= head_dim; d += 4) {
        const double* k0 = keys + d * pitch;
        const double* k1 = k0 + pitch;
        const double* k2 = k1 + pitch;
        const double* k3 = k2 + pitch;
        const double q0 = query[d];
        const double q1 = query[d + 1];
        const double q2 = query[d + 2];
        const double q3 = query[d + 3];
        for (std::int64_t j = 0; j < count; ++j) {
            scores[j] += q0 * k0[j] + q1 * k1[j] + q2 * k2[j] + q3 * k3[j];
        }
    }
    for (; d < head_dim; ++d) {
        for (std::int64_t j = 0; j < count; ++j)
            scores[j] += query[d] * keys[d * pitch + j];
    }
    for (std::int64_t j = 0; j < count; ++j)
        scores[j] *= scale;
}

void accumulate_values(std::span<const double> weights, std::span<const std::int64_t> rows,
                       const double* values, std::int64_t value_dim, double* accumulator) {
    std::size_t n = 0;
    for (; n + 4 <= rows.size(); n += 4) {
        const double* v0 = values + rows[n] * value_dim;
        const double* v1 = values + rows[n + 1] * value_dim;
        const double* v2 = values + rows[n + 2] * value_dim;
        const double* v3 = values + rows[n + 3] * value_dim;
        const double w0 = weights[n];
        const double w1 = weights[n + 1];
        const double w2 = weights[n + 2];
        const double w3 = weights[n + 3];
        for (std::int64_t d = 0; d < value_dim; ++d) {
            accumulator[d] += w0 * v0[d] + w1 * v1[d] + w2 * v2[d] + w3 * v3[d];
        }
    }
    for (; n < rows.size(); ++n) {
        const double* row = values + rows[n] * value_dim;
        for (std::int64_t d = 0; d < value_dim; ++d)
            accumulator[d] += weights[n] * row[d];
    }
}

void RowSoftmax::take(std::span<const double> scores, const double* values) {
    std::array<double, kKeysPerBlock> weights;
    std::array<std::int64_t, kKeysPerBlock> rows;
    std::size_t seen = 0;
    double largest = largest_;
    for (std::size_t j = 0; j < scores.size(); ++j) {
        const double score = scores[j];
        // A hidden key is left out altogether: its value could be NaN, and 0 * NaN is NaN.
        if (score == kNegativeInfinity) continue;
        weights[seen] = score;
        rows[seen] = static_cast<std::int64_t>(j);
        ++seen;
        if (score > largest || std::isnan(score)) largest = score;
    }
    if (seen == 0) return;

    if (largest != largest_) {
        // (NaN takes this branch, and spreads to the sum and to every element.)
        const double shrink = largest_ == kNegativeInfinity ? 0.0 : std::exp(largest_ - largest);
        sum_ *= shrink;
        for (std::int64_t d = 0; d < value_dim_; ++d)
            accumulator_[d] *= shrink;
        largest_ = largest;
    }
    for (std::size_t n = 0; n < seen; ++n) {
        weights[n] = std::exp(weights[n] - largest_);
        sum_ += weights[n];
    }
    accumulate_values({weights.data(), seen}, {rows.data(), seen}, values, value_dim_,
                      accumulator_);
}

double RowSoftmax::finish() {
    if (largest_ == kNegativeInfinity) return kNegativeInfinity;
    if (sink_ > largest_) {
        const double shrink = std::exp(largest_ - sink_);
        sum_ *= shrink;
        for (std::int64_t d = 0; d < value_dim_; ++d)
            accumulator_[d] *= shrink;
        largest_ = sink_;
    }
    sum_ += std::exp(sink_ - largest_);
    for (std::int64_t d = 0; d < value_dim_; ++d)
        accumulator_[d] /= sum_;
    return largest_ + std::log(sum_);
}

}  // namespace jitney::reference
