#include "operations/merge_states/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/steps.hpp"
#include "operations/reference/check.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

constexpr double kNegativeInfinity = -std::numeric_limits<double>::infinity();

// One partial result, or the merged one: rows by request, position and head.
struct State {
    Tensor out;
    std::optional<Tensor> lse;

    bool packed() const { return out.ndim == 3; }
    std::int64_t batch() const { return packed() ? 1 : out.shape[0]; }
    std::int64_t queries() const { return out.shape[packed() ? 0 : 1]; }
    std::int64_t heads() const { return out.shape[packed() ? 1 : 2]; }
    std::int64_t head_dim() const { return out.shape[packed() ? 2 : 3]; }

    Row row(std::int64_t batch, std::int64_t position, std::int64_t head) const {
        const auto& strides = out.strides;
        if (packed()) return row_of(out, position * strides[0] + head * strides[1], 2);
        return row_of(out, batch * strides[0] + position * strides[1] + head * strides[2], 3);
    }
    float* log_sum(std::int64_t batch, std::int64_t position, std::int64_t head) const {
        const auto& strides = lse->strides;
        const std::int64_t offset =
            packed() ? position * strides[0] + head * strides[1]
                     : batch * strides[0] + head * strides[1] + position * strides[2];
        return static_cast<float*>(lse->data) + offset;
    }
};

// Number `index` of several tensors behind each other.
Tensor item(const Tensor& tensor, std::int64_t index) {
    Tensor one = tensor;
    one.ndim = tensor.ndim - 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(one.ndim); ++i) {
        one.shape[i] = tensor.shape[i + 1];
        one.strides[i] = tensor.strides[i + 1];
    }
    one.data =
        static_cast<std::byte*>(tensor.data) + index * step_of(tensor, 0) * size_of(tensor.dtype);
    return one;
}

void check_state(const State& state, const Tensor& result, const std::string& name) {
    require_heads(state.out, name + "out", result.ndim);
    const auto& shape = result.shape;
    if (state.packed()) {
        require_shape(state.out, name + "out", {shape[0], shape[1], shape[2]});
    } else {
        require_shape(state.out, name + "out", {shape[0], shape[1], shape[2], shape[3]});
    }
    if (!state.lse) return;
    require_host(*state.lse, name + "lse");
    require(state.lse->dtype == DType::fp32, name + "lse must be fp32");
    if (state.packed()) {
        require_shape(*state.lse, name + "lse", {shape[0], shape[1]});
    } else {
        require_shape(*state.lse, name + "lse", {shape[0], shape[2], shape[1]});
    }
}

std::vector<State> states_of(const MergeStates& call) {
    std::vector<State> states;
    for (const MergeStates::Part& part : call.parts) {
        if (part.out.ndim == call.out.ndim) {
            states.push_back({part.out, part.lse});
        } else {
            require(part.out.ndim == call.out.ndim + 1 && part.lse.ndim == call.out.ndim &&
                        part.lse.shape[0] == part.out.shape[0],
                    "a part's out and lse must both have the number of parts before their other "
                    "dimensions");
            for (std::int64_t i = 0; i < part.out.shape[0]; ++i)
                states.push_back({item(part.out, i), item(part.lse, i)});
        }
    }
    for (const State& state : states)
        check_state(state, call.out, "a part's ");
    return states;
}

void merge_row(const std::vector<State>& states, const State& result, std::int64_t batch,
               std::int64_t position, std::int64_t head) {
    double top = kNegativeInfinity;
    for (const State& state : states)
        top = std::max(top, static_cast<double>(*state.log_sum(batch, position, head)));
    const auto dim = static_cast<std::size_t>(result.head_dim());
    std::vector<double> merged(dim, 0.0);
    std::vector<double> part(dim);
    double sum = 0.0;
    for (const State& state : states) {
        const auto lse = static_cast<double>(*state.log_sum(batch, position, head));
        // Left out altogether: what stands in its row could be NaN.
        if (lse == kNegativeInfinity) continue;
        const double weight = std::exp(lse - top);
        sum += weight;
        read_row(state.row(batch, position, head), result.head_dim(), part.data());
        for (std::size_t i = 0; i < dim; ++i)
            merged[i] += weight * part[i];
    }
    for (double& value : merged)
        value = sum == 0.0 ? 0.0 : value / sum;
    write_row(result.row(batch, position, head), result.head_dim(), merged.data());
    if (result.lse) {
        *result.log_sum(batch, position, head) =
            static_cast<float>(sum == 0.0 ? kNegativeInfinity : top + std::log(sum));
    }
}

}  // namespace

void merge_states(const MergeStates& call) {
    require(call.out.ndim == 3 || call.out.ndim == 4,
            "out has the shape " + text_of_shape(call.out) +
                "; it must be [batch, q_len, heads, head_dim] or [total_q, heads, head_dim]");
    const State result{call.out, call.lse};
    check_state(result, call.out, "");
    const std::vector<State> states = states_of(call);
    require(!states.empty(), "there are no parts to merge; give two or more");
    parallel_for(result.batch() * result.queries(), [&](std::int64_t query) {
        for (std::int64_t head = 0; head < result.heads(); ++head) {
            merge_row(states, result, query / result.queries(), query % result.queries(), head);
        }
    });
}

}  // namespace jitney::reference
