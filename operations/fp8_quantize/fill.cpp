#include "operations/fp8_quantize/fill.hpp"

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/scale.h"

namespace jitney {

Fp8QuantizeParams make_params(const checks::Fp8QuantizeCall& call,
                              const policy::Fp8QuantizeChoice& choice, const Fp8Numbers& numbers,
                              void* counters) noexcept {
    const policy::Fp8Tiling& tiling = choice.tiling;
    const auto stride = [&tiling](const Tensor& matrix) {
        return tiling.recut ? tiling.cols : matrix.strides[0];
    };
    Fp8QuantizeParams params{};
    params.x = call.x.data;
    params.x_stride = stride(call.x);
    if (call.out) {
        params.codes = static_cast<unsigned char*>(call.out->data);
        params.codes_stride = stride(*call.out);
    }
    if (call.out_transposed) {
        params.transposed = static_cast<unsigned char*>(call.out_transposed->data);
        params.transposed_stride = call.out_transposed->strides[0];
    }
    params.rows = tiling.rows;
    params.cols = tiling.cols;
    params.last_cols = tiling.last_cols;
    params.tiles = tiling.tiles;
    params.tiles_across = tiling.tiles_across;
    params.log2_across = tiling.log2_across;
    params.backwards = tiling.backwards ? 1 : 0;
    params.wide_x = tiling.wide_x ? 1 : 0;
    params.wide_codes = tiling.wide_codes ? 1 : 0;
    params.wide_transposed = tiling.wide_transposed ? 1 : 0;
    params.multiplier = numbers.multiplier;
    params.new_multiplier = numbers.new_multiplier;
    params.scale = numbers.scale;
    params.amax = numbers.amax;
    params.state = numbers.state;
    params.largest = call.problem.out == kFp8E4m3 ? kE4m3Largest : kE5m2Largest;
    params.counters = static_cast<AmaxCounters*>(counters);
    return params;
}

}  // namespace jitney
