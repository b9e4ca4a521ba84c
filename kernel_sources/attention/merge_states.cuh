// attn_merge_states: merges partial results of attention over different keys, each with its LSE,
// into the result over all of them. Partial results are rows that are normalised already: their
// maximum is the LSE, and their sum 1.
#pragma once

#include "attention/merge.cuh"
#include "attention/merge_states.h"
#include "attention/rows.cuh"
#include "attention/softmax.cuh"
#include "common/element.cuh"

namespace jitney {

template <class C>
struct MergeStates {
    using T = Element<C::format>;
    static constexpr int kWidth = C::head_dim % C::width == 0 ? C::width : 1;
    using Result = RowResult<C::head_dim, kWidth>;
    // Few parts are usual, and other warps hide the waits.
    static constexpr int kAhead = kMergeAhead<Result> < 4 ? kMergeAhead<Result> : 4;

    const MergeStatesParams& params;
    int batch;
    int position;
    int head;

    JITNEY_DEVICE MergeStates(const MergeStatesParams& p, long long row) : params(p) {
        const long long query = row / p.heads;
        head = static_cast<int>(row - query * p.heads);
        batch = static_cast<int>(query / p.q_len);
        position = static_cast<int>(query - static_cast<long long>(batch) * p.q_len);
    }

    // The tensor that has a part; `part` becomes its number there.
    JITNEY_DEVICE const MergeSource& source_of(int& part) const {
        int source = 0;
        while (part >= params.sources[source].parts) {
            part -= params.sources[source].parts;
            ++source;
        }
        return params.sources[source];
    }

    JITNEY_DEVICE RowStatistics statistics(int part) const {
        const MergeSource& source = source_of(part);
        const float lse =
            source
                .lse[part * source.lse_part + offset_of(source.lse_strides, batch, position, head)];
        return {lse * kLog2E, lse == -infinity() ? 0.0f : 1.0f};
    }

    JITNEY_DEVICE void load(int part, int lane, typename Result::Values& values) const {
        const MergeSource& source = source_of(part);
        const T* row = static_cast<const T*>(source.out) + part * source.out_part +
                       offset_of(source.out_strides, batch, position, head);
        Result::for_each_vector(lane, [&](int i, int dim) {
            const Vector<T, kWidth> elements = load_vector<kWidth>(row + dim);
#pragma unroll
            for (int j = 0; j < kWidth; ++j)
                values[i].items[j] = elements.items[j].value();
        });
    }

    JITNEY_DEVICE void run(int lane) const {
        const Result result = merge_parts<Result, kAhead>(
            params.parts, lane, [&](int part) { return statistics(part); },
            [&](int part, typename Result::Values& values) { load(part, lane, values); });
        const RowEnd end = row_end(result.maximum, result.sum);
        result.write(
            static_cast<T*>(params.out) + offset_of(params.out_strides, batch, position, head),
            end.norm, lane);
        if (params.lse != nullptr && lane == 0) {
            params.lse[offset_of(params.lse_strides, batch, position, head)] = end.lse;
        }
    }
};

// A row is one warp's, which has read all of it before it writes any: in place is safe.
template <class C>
__global__ void __launch_bounds__(kMergeThreads)
    attn_merge_states(const __grid_constant__ MergeStatesParams params) {
    const long long row = static_cast<long long>(blockIdx.x) * kMergeRows + warp_index();
    if (row < params.rows) {
        MergeStates<C>(params, row).run(static_cast<int>(threadIdx.x) % 32);
    }
}

}  // namespace jitney
