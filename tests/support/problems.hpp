// Random attention problems, with the tensors to run them on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/attention/reference.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

enum class MaskKind {
    none,
    keys,          // [batch, kv_len]
    queries,       // [batch, q_len, kv_len]
    shared_heads,  // [batch, 1, q_len, kv_len]
    heads,         // [batch, q_heads, q_len, kv_len]
    one_batch,     // [1, q_heads, q_len, kv_len]
};

struct AttentionShape {
    std::int64_t batch = 1;
    std::int64_t q_len = 1;
    std::int64_t kv_len = 1;
    std::int64_t q_heads = 1;
    std::int64_t kv_heads = 1;
    std::int64_t head_dim = 1;
    DType dtype = DType::bf16;
    MaskKind mask = MaskKind::none;
    bool causal = false;
    std::optional<double> scale;

    std::string text() const;
};

// How the tensors of a problem lie: all alike, or each in its own way.
struct AttentionLayouts {
    AttentionLayouts(const Layout& all = {}) : q(all), k(all), v(all), out(all) {}
    // Each with strides of its own.
    static AttentionLayouts apart(const Layout& all = {});

    Layout q;
    Layout k;
    Layout v;
    Layout out;
};

// The tensors of one problem. out and lse are poisoned, and so is all padding.
struct AttentionProblem {
    // q, k, v from the normal distribution, the mask from coin tosses, some of its rows all false.
    AttentionProblem(const AttentionShape& problem, Random& random,
                     const AttentionLayouts& layouts = {});

    // Whether a query that reads this KV head sees the key.
    bool is_seen(std::int64_t batch, std::int64_t kv_head, std::int64_t key) const;
    // Makes the keys that none sees NaN and infinite, which must not matter.
    void spoil_unseen(Random& random);

    AttentionShape shape;
    HostTensor q;
    HostTensor k;
    HostTensor v;
    HostTensor out;
    std::optional<HostTensor> mask;
    HostTensor lse;

    // The call that computes `out` and `lse` of this problem on the reference backend.
    reference::Attention reference_call();
};

// Bounds, all included, of a random shape.
struct AttentionLimits {
    std::int64_t batch = 3;
    std::int64_t q_len = 100;
    std::int64_t kv_len = 200;
    std::int64_t kv_heads = 3;
    std::int64_t group = 8;
    std::vector<std::int64_t> head_dims{32, 64, 80, 96, 128};
    std::vector<DType> dtypes{DType::bf16, DType::fp16};
    bool masks = true;
};

AttentionShape random_attention_shape(Random& random, const AttentionLimits& limits = {});
// blhd or bhld, with or without padding.
Layout random_layout(Random& random);

}  // namespace jitney::tests
