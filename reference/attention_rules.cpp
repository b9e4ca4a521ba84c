#include "reference/attention_rules.hpp"

#include <string>

#include "reference/check.hpp"

namespace jitney::reference {

Mask::Mask(const Tensor& mask, std::int64_t batch, std::int64_t heads, std::int64_t q_len,
           std::int64_t kv_len)
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
        require(mask.shape[i] == sizes[dim] || mask.shape[i] == 1,
                "the mask has the shape " + text_of_shape(mask) + ", whose dimension " +
                    std::to_string(i) + " must be " + std::to_string(sizes[dim]) + " or 1");
        strides_[dim] = mask.shape[i] == 1 ? 0 : mask.strides[i];
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

}  // namespace jitney::reference
