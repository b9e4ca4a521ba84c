// Merging partial results of a row of attention: what warps, blocks and whole calls have made of
// parts of its keys.
#pragma once

#include "common/numeric.cuh"
#include "common/vector.cuh"
#include "common/warp.cuh"

namespace jitney {

// One row as a warp holds it: the maximum in units of log2 (0 where nothing was seen), the sum, and
// the accumulators, not normalised. A lane has `width` neighbouring elements of every 32 * width.
template <int dims, int width_>
struct RowResult {
    static constexpr int head_dim = dims;
    static constexpr int width = width_;
    static constexpr int kVectors = (dims + 32 * width - 1) / (32 * width);
    static_assert(dims % width == 0);
    using Values = Vector<float, width>[kVectors];

    float maximum;
    float sum;
    Values values;

    JITNEY_DEVICE void scale(float factor) {
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
#pragma unroll
            for (int j = 0; j < width; ++j)
                values[i].items[j] *= factor;
        }
    }

    JITNEY_DEVICE void add(const Values& other, float weight, int lane) {
        for_each_vector(lane, [&](int i, int) {
#pragma unroll
            for (int j = 0; j < width; ++j)
                values[i].items[j] += weight * other[i].items[j];
        });
    }

    // Stores the accumulators times `norm` as elements of T, a format's Element.
    template <class T>
    JITNEY_DEVICE void write(T* out, float norm, int lane) const {
        for_each_vector(lane, [&](int i, int dim) {
            Vector<T, width> to;
#pragma unroll
            for (int j = 0; j < width; ++j)
                to.items[j] = T::from(values[i].items[j] * norm);
            store_vector(out + dim, to);
        });
    }

    // body(vector, first dim) for each vector of this lane that lies in the head.
    template <class Body>
    JITNEY_DEVICE static void for_each_vector(int lane, const Body& body) {
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
            const int dim = (i * 32 + lane) * width;
            if (dim < dims) body(i, dim);
        }
    }
};

// What a partial result is merged by; a part that saw nothing has the sum 0 and weighs nothing.
struct RowStatistics {
    float maximum;
    float sum;
};

// How many parts are loaded at a time: as many as 64 registers take.
template <class Result>
constexpr int kMergeAhead = Result::kVectors* Result::width <= 4
                                ? 16
                                : (Result::kVectors* Result::width <= 64
                                       ? 64 / (Result::kVectors * Result::width)
                                       : 1);

// Merges `parts` parts of a row; the loads of `ahead` parts are in flight at once.
// statistics(part) is asked for each part by one lane, load(part, values) by all of them. A part
// without weight has no influence, whatever its values are.
template <class Result, int ahead, class Statistics, class Load>
JITNEY_DEVICE Result merge_parts(int parts, int lane, const Statistics& statistics,
                                 const Load& load) {
    Result result = {};
    result.maximum = -infinity();
#pragma unroll 1
    for (int first = 0; first < parts; first += 32) {
        const int count = min(32, parts - first);
        RowStatistics mine = {-infinity(), 0.0f};
        if (lane < count) mine = statistics(first + lane);
        typename Result::Values loaded[ahead];
        const auto load_from = [&](int part) {
#pragma unroll
            for (int j = 0; j < ahead; ++j) {
                if (part + j < count) load(first + part + j, loaded[j]);
            }
        };
        load_from(0);  // before the weights are known, so that both loads are in flight

        const float top = warp_max(mine.sum == 0.0f ? -infinity() : mine.maximum);
        const float maximum = fmaxf(result.maximum, top);
        const float shift = maximum == -infinity() ? 0.0f : maximum;
        const float rescale = exp2_fast(result.maximum - shift);
        const float weight = mine.sum == 0.0f ? 0.0f : exp2_fast(mine.maximum - shift);
        result.maximum = maximum;
        result.sum = result.sum * rescale + warp_sum(weight * mine.sum);
        result.scale(rescale);
#pragma unroll 1
        for (int part = 0; part < count; part += ahead) {
            if (part > 0) load_from(part);
#pragma unroll
            for (int j = 0; j < ahead; ++j) {
                const float part_weight = __shfl_sync(kAllLanes, weight, (part + j) % 32);
                if (part + j < count && part_weight != 0.0f) {
                    result.add(loaded[j], part_weight, lane);
                }
            }
        }
    }
    if (result.maximum == -infinity()) result.maximum = 0.0f;
    return result;
}

}  // namespace jitney
