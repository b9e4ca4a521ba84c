// What a query sees: see attention_core.hpp for what is asked of Rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "jitney/tensor.hpp"
#include "reference/attention_core.hpp"

namespace jitney::reference {

// A boolean mask of any rank as one of [batch, heads, q_len, kv_len]: a dimension that is missing
// or of size 1 has the stride 0. Throws Error where its shape fits no such mask.
class Mask {
  public:
    Mask(const Tensor& mask, std::int64_t batch, std::int64_t heads, std::int64_t q_len,
         std::int64_t kv_len);

    // Makes the scores of the keys from first_key on -inf where the mask is false.
    void hide(std::int64_t request, std::int64_t head, std::int64_t query, std::int64_t first_key,
              std::span<double> scores) const;

  private:
    const std::uint8_t* data_;
    std::array<std::int64_t, 4> strides_{};
};

struct MaskRules {
    bool causal = false;
    std::optional<Mask> mask;

    KeyRange range(std::int64_t /*request*/, std::int64_t /*head*/, std::int64_t query,
                   std::int64_t q_len, std::int64_t kv_len) const {
        return {0, causal ? query + kv_len - q_len + 1 : kv_len};
    }
    void apply(std::int64_t request, std::int64_t head, std::int64_t query, std::int64_t first_key,
               std::span<double> scores) const {
        if (mask) mask->hide(request, head, query, first_key, scores);
    }
    double sink(std::int64_t /*head*/) const { return kNegativeInfinity; }
};

}  // namespace jitney::reference
