// Where the rows of dense tensors lie: see attention_core.hpp for what is asked of Queries and
// Keys.
#pragma once

#include <cstdint>
#include <optional>

#include "jitney/tensor.hpp"
#include "reference/rows.hpp"

namespace jitney::reference {

struct DenseQueries {
    Blhd q;
    Blhd result;
    std::optional<Tensor> log_sums;

    std::int64_t requests() const { return q.tensor.shape[0]; }
    std::int64_t length(std::int64_t) const { return q.tensor.shape[1]; }
    std::int64_t heads() const { return q.tensor.shape[2]; }
    Row query(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return q.row(request, position, head);
    }
    Row out(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return result.row(request, position, head);
    }
    float* lse(std::int64_t request, std::int64_t position, std::int64_t head) const {
        if (!log_sums) return nullptr;
        const auto& strides = log_sums->strides;
        return static_cast<float*>(log_sums->data) + request * strides[0] + head * strides[1] +
               position * strides[2];
    }
};

struct DenseKeys {
    Blhd k;
    Blhd v;

    std::int64_t length(std::int64_t) const { return k.tensor.shape[1]; }
    std::int64_t heads() const { return k.tensor.shape[2]; }
    std::int64_t key_dim() const { return k.tensor.shape[3]; }
    std::int64_t value_dim() const { return v.tensor.shape[3]; }
    Row key(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return k.row(request, position, head);
    }
    Row value(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return v.row(request, position, head);
    }
};

}  // namespace jitney::reference
