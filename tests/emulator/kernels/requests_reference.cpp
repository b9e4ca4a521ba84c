// The reference's attention loop over the rows of a batch of requests.
#include <algorithm>
#include <cmath>

#include "operations/attention/reference_core.hpp"
#include "tests/emulator/kernels/requests.hpp"

namespace jitney::emulator {
namespace {

using reference::Blhd;
using reference::KeyRange;
using reference::Row;

struct Queries {
    const Requests& batch;
    Blhd q;
    Blhd result;
    Tensor log_sums;

    std::int64_t first(std::int64_t request) const {
        return batch.shape.packed ? batch.tables.qo_indptr[static_cast<std::size_t>(request)] : 0;
    }
    std::int64_t entry(std::int64_t request) const { return batch.shape.packed ? 0 : request; }

    std::int64_t requests() const { return batch.shape.batch(); }
    std::int64_t length(std::int64_t request) const {
        return batch.shape.requests[static_cast<std::size_t>(request)].q_len;
    }
    std::int64_t heads() const { return batch.shape.q_heads(); }
    Row query(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return q.row(entry(request), first(request) + position, head);
    }
    Row out(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return result.row(entry(request), first(request) + position, head);
    }
    float* lse(std::int64_t request, std::int64_t position, std::int64_t head) const {
        const std::int64_t row = first(request) + position;
        const auto& strides = log_sums.strides;
        return static_cast<float*>(log_sums.data) + entry(request) * strides[0] +
               (batch.shape.packed ? row * strides[1] + head * strides[2]
                                   : head * strides[1] + row * strides[2]);
    }
};

struct Keys {
    const Requests& batch;
    Blhd k;
    Blhd v;

    std::int64_t length(std::int64_t request) const {
        return batch.shape.requests[static_cast<std::size_t>(request)].kv_len;
    }
    std::int64_t heads() const { return batch.shape.kv_heads; }
    std::int64_t key_dim() const { return batch.shape.head_dim; }
    std::int64_t value_dim() const { return batch.shape.head_dim; }
    Row key(std::int64_t request, std::int64_t position, std::int64_t head) const {
        const KeyPlace place = batch.place(request, position);
        return k.row(place.outer, place.inner, head);
    }
    Row value(std::int64_t request, std::int64_t position, std::int64_t head) const {
        const KeyPlace place = batch.place(request, position);
        return v.row(place.outer, place.inner, head);
    }
};

struct Rules {
    const Requests& batch;

    KeyRange range(const reference::QueryPlace& query) const { return {0, query.kv_len}; }
    void apply(const reference::QueryPlace& query, std::int64_t first_key,
               std::span<double> scores) const {
        const RequestsShape& shape = batch.shape;
        for (std::size_t i = 0; i < scores.size(); ++i) {
            const std::int64_t key = first_key + static_cast<std::int64_t>(i);
            double& score = scores[i];
            if (shape.softcap != 0.0) score = shape.softcap * std::tanh(score / shape.softcap);
            if (shape.alibi) {
                score -= batch.slopes.get(query.head) *
                         static_cast<double>(std::abs(query.own_key() - key));
            }
            if (!batch.sees(query.request, query.head, query.position, key)) {
                score = reference::kNegativeInfinity;
            }
        }
    }
    double sink(std::int64_t head) const {
        return batch.shape.sinks ? batch.sinks.get(head) : reference::kNegativeInfinity;
    }
};

}  // namespace

void Requests::run_reference() {
    append();
    const Queries queries{*this, {q.view()}, {out.view()}, lse.view()};
    const Keys keys{*this, {k.view()}, {v.view()}};
    reference::attend(queries, keys, Rules{*this}, shape.scale());
}

}  // namespace jitney::emulator
