#include "operations/attention/reference_rules.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/steps.hpp"
#include "operations/reference/check.hpp"

namespace jitney::reference {

Mask::Mask(const Tensor& mask, std::int64_t batch, std::int64_t heads, std::int64_t q_len,
           std::int64_t kv_len, Fit fit)
    : data_(static_cast<const std::uint8_t*>(mask.data)) {
    require(mask.dtype == DType::boolean, "the mask must be boolean, true where a key is kept");
    require_host(mask, "the mask");
    require(mask.ndim >= 2 && mask.ndim <= 4,
            "the mask has the shape " + text_of_shape(mask) +
                "; pass [batch, kv], [batch, q, kv] or [batch, 1 or heads, q, kv]");
    const std::array<std::int64_t, 4> sizes{batch, heads, q_len, kv_len};
    // Which of those four the dimensions of each rank are.
    static constexpr std::array<std::array<std::size_t, 4>, 3> kDims{
        {{0, 3}, {0, 2, 3}, {0, 1, 2, 3}}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(mask.ndim); ++i) {
        const std::size_t dim = kDims[static_cast<std::size_t>(mask.ndim - 2)][i];
        const bool may_be_larger = fit == Fit::at_least && dim >= 2;
        const bool fits =
            mask.shape[i] == sizes[dim] || (may_be_larger && mask.shape[i] > sizes[dim]);
        // A column is a key, and none stands for others.
        const bool repeats = dim != 3 && mask.shape[i] == 1;
        require(fits || repeats, "the mask has the shape " + text_of_shape(mask) +
                                     ", whose dimension " + std::to_string(i) +
                                     (dim == 3 ? ", the keys," : "") + " must be " +
                                     (may_be_larger ? "at least " : "") +
                                     std::to_string(sizes[dim]) + (dim == 3 ? "" : " or 1"));
        strides_[dim] = step_of(mask, i);
    }
}

void Mask::hide(std::int64_t request, std::int64_t head, std::int64_t query, std::int64_t first_key,
                std::span<double> scores) const {
    const std::uint8_t* keep =
        data_ + request * strides_[0] + head * strides_[1] + query * strides_[2];
    for (std::size_t j = 0; j < scores.size(); ++j) {
        const std::int64_t key = first_key + static_cast<std::int64_t>(j);
        if (keep[key * strides_[3]] == 0) scores[j] = kNegativeInfinity;
    }
}

namespace {

double element(const Tensor& tensor, std::int64_t i) {
    return static_cast<double>(static_cast<const float*>(tensor.data)[i * tensor.strides[0]]);
}

}  // namespace

KeyRange CallRules::range(const QueryPlace& query) const {
    KeyRange range{0, query.kv_len};
    if (causal) range.end = std::min(range.end, query.own_key() + 1);
    if (window_right >= 0) range.end = std::min(range.end, query.own_key() + window_right + 1);
    if (window_left >= 0) range.begin = query.own_key() - window_left;
    return range;
}

void CallRules::apply(const QueryPlace& query, std::int64_t first_key,
                      std::span<double> scores) const {
    if (softcap) {
        for (double& score : scores)
            score = *softcap * std::tanh(score / *softcap);
    }
    if (alibi_slopes) {
        const double slope = element(*alibi_slopes, query.head);
        for (std::size_t j = 0; j < scores.size(); ++j) {
            const std::int64_t distance =
                query.own_key() - (first_key + static_cast<std::int64_t>(j));
            scores[j] -= slope * static_cast<double>(std::abs(distance));
        }
    }
    if (mask) mask->hide(query.request, query.head, query.position, first_key, scores);
}

double CallRules::sink(std::int64_t head) const {
    return sinks ? element(*sinks, head) : kNegativeInfinity;
}

}  // namespace jitney::reference
