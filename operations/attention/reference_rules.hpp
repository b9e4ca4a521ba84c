// What a query sees, and what becomes of its scores: see attention_core.hpp for what is asked of
// Rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "jitney/tensor.hpp"
#include "operations/attention/reference_core.hpp"

namespace jitney::reference {

// A boolean mask of any rank as one of [batch, heads, q_len, kv_len]: a dimension but the last that
// is missing or of size 1 has the stride 0. Throws Error where its shape fits no such mask.
class Mask {
  public:
    // Of requests of several lengths q_len and kv_len are the longest, and the mask may be larger.
    enum class Fit { exact, at_least };

    Mask(const Tensor& mask, std::int64_t batch, std::int64_t heads, std::int64_t q_len,
         std::int64_t kv_len, Fit fit = Fit::exact);

    // Makes the scores of the keys from first_key on -inf where the mask is false.
    void hide(std::int64_t request, std::int64_t head, std::int64_t query, std::int64_t first_key,
              std::span<double> scores) const;

  private:
    const std::uint8_t* data_;
    std::array<std::int64_t, 4> strides_{};
};

struct CallRules {
    bool causal = false;
    std::optional<Mask> mask;
    std::int64_t window_left = -1;  // keys before the query's own that it sees; -1: all
    std::int64_t window_right = -1;
    std::optional<double> softcap;
    std::optional<Tensor> alibi_slopes;  // fp32 [q_heads]
    std::optional<Tensor> sinks;         // fp32 [q_heads]

    KeyRange range(const QueryPlace& query) const;
    void apply(const QueryPlace& query, std::int64_t first_key, std::span<double> scores) const;
    double sink(std::int64_t head) const;
};

}  // namespace jitney::reference
