// Casts to FP8, products, and sums of columns.
#include "kernel_sources/fp8/state.h"
#include "tests/api/software_launches.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/scale.h"
#include "operations/fp8_gemm/reference.hpp"
#include "operations/fp8_linear/reference.hpp"
#include "operations/fp8_quantize/reference.hpp"
#include "tests/api/software_tensors.hpp"

namespace jitney::tests {
namespace {

// Rows [first, first + rows) of the matrix.
void write_codes_of_rows(std::string_view image, const Fp8QuantizeParams& p, std::int64_t first,
                         std::int64_t rows, std::int64_t cols) {
    const auto out = static_cast<DType>(constant(image, "out"));
    const int codes = constant(image, "codes");
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const auto* x = static_cast<const std::byte*>(p.x) + first * p.x_stride * size_of(dtype);
    reference::Fp8Quantize call;
    call.x = tensor_of(x, dtype, {rows, cols}, {p.x_stride, 1});
    if ((codes & kRowCodes) != 0) {
        call.out =
            tensor_of(p.codes + first * p.codes_stride, out, {rows, cols}, {p.codes_stride, 1});
    }
    if ((codes & kTransposedCodes) != 0) {
        call.out_transposed =
            tensor_of(p.transposed + first, out, {cols, rows}, {p.transposed_stride, 1});
    }
    call.multiplier = number_of(p.multiplier);
    call.by_scale = p.by_scale != 0;
    call.scale = codes != kNoCodes ? number_of(p.scale) : std::nullopt;
    reference::fp8_quantize(call);
}

float amax_of_rows(std::string_view image, const Fp8QuantizeParams& p, std::int64_t first,
                   std::int64_t rows, std::int64_t cols) {
    const auto dtype = static_cast<DType>(constant(image, "format"));
    const auto* x = static_cast<const std::byte*>(p.x) + first * p.x_stride * size_of(dtype);
    float amax = 0;
    reference::Fp8Quantize call;
    call.x = tensor_of(x, dtype, {rows, cols}, {p.x_stride, 1});
    call.amax = tensor_of(&amax, DType::fp32, {1}, {1});
    reference::fp8_quantize(call);
    return amax;
}

// What moves several elements at once begins where it can.
void check_begin(const void* data, std::int64_t stride_bytes, std::uintptr_t alignment) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    if (begin % alignment != 0 || static_cast<std::uintptr_t>(stride_bytes) % alignment != 0) {
        throw std::logic_error("several elements at once, and rows that do not begin so");
    }
}

// Of one row, however far from the next.
std::int64_t stride_of(std::int64_t rows, std::int64_t stride) {
    return rows > 1 ? stride : 0;
}

void check_aligned(std::string_view image, const Fp8QuantizeParams& p) {
    const int element = size_of(static_cast<DType>(constant(image, "format")));
    const int codes = constant(image, "codes");
    if (p.wide_x != 0) check_begin(p.x, stride_of(p.rows, p.x_stride) * element, 16);
    if (p.wide_codes != 0 && (codes & kRowCodes) != 0)
        check_begin(p.codes, stride_of(p.rows, p.codes_stride), 8);
    if (p.wide_transposed != 0 && (codes & kTransposedCodes) != 0)
        check_begin(p.transposed, stride_of(p.cols, p.transposed_stride), 16);
}

void check_aligned_scales(std::string_view image, const Fp8ScalesParams& p, bool x, bool codes) {
    const int element = size_of(static_cast<DType>(constant(image, "format")));
    if (x) check_begin(p.x, stride_of(p.rows, p.x_stride) * element, 16);
    if (codes) check_begin(p.codes, stride_of(p.rows, p.codes_stride), 8);
}

void run_scales(std::string_view image, const Fp8ScalesParams& p,
                reference::Fp8Granularity granularity) {
    const auto out = static_cast<DType>(constant(image, "out"));
    if (p.largest != (out == DType::fp8_e4m3 ? kE4m3Largest : kE5m2Largest)) {
        throw std::logic_error("the largest number of another format");
    }
    reference::Fp8Quantize call;
    call.x = tensor_of(p.x, static_cast<DType>(constant(image, "format")), {p.rows, p.cols},
                       {p.x_stride, 1});
    call.out = tensor_of(p.codes, out, {p.rows, p.cols}, {p.codes_stride, 1});
    const std::int64_t part_rows =
        granularity == reference::Fp8Granularity::block ? kFp8ScaleCols : 1;
    const std::int64_t across = granularity == reference::Fp8Granularity::row
                                    ? 1
                                    : (p.cols + kFp8ScaleCols - 1) / kFp8ScaleCols;
    call.scale = tensor_of(p.scales, DType::fp32, {(p.rows + part_rows - 1) / part_rows, across},
                           {p.scales_down, p.scales_across});
    call.dynamic = true;
    call.granularity = granularity;
    call.power_of_two = p.power_of_two != 0;
    reference::fp8_quantize(call);
}

void check_aligned(std::string_view image, const Fp8GemmParams& p) {
    const bool trans_a = constant(image, "trans_a") != 0;
    const bool trans_b = constant(image, "trans_b") != 0;
    if (constant(image, "unaligned") == 0 && p.k > 0) {
        check_begin(p.a.data, stride_of(trans_a ? p.k : p.m, p.a.stride), 16);
        check_begin(p.b.data, stride_of(trans_b ? p.n : p.k, p.b.stride), 16);
    }
    if (p.out_vectors == 0) return;
    const int element = size_of(static_cast<DType>(constant(image, "out")));
    check_begin(p.out, stride_of(p.m, p.out_stride) * element, 16);
}

std::int64_t blocks_of(std::int64_t size) {
    return (size + kFp8ScaleBlock - 1) / kFp8ScaleBlock;
}

// One for each group, where there are groups.
Tensor of_groups(const Fp8GemmParams& p, Tensor one, long long step) {
    if (p.groups == 0) return one;
    for (std::size_t i = static_cast<std::size_t>(one.ndim); i > 0; --i) {
        one.shape[i] = one.shape[i - 1];
        one.strides[i] = one.strides[i - 1];
    }
    ++one.ndim;
    one.shape[0] = p.groups;
    one.strides[0] = step;
    return one;
}

void multiply(std::string_view image, const Fp8GemmParams& p, bool trans_a, bool trans_b) {
    if ((p.amax != nullptr) != (p.amax_counters != nullptr)) {
        throw std::logic_error("amax comes with counters");
    }
    const auto matrix = [&](const char* format, const Fp8GemmOperand& operand, int rows, int cols) {
        return tensor_of(operand.data, static_cast<DType>(constant(image, format)), {rows, cols},
                         {operand.stride, 1});
    };
    reference::Fp8Gemm call;
    call.trans_a = trans_a;
    call.trans_b = trans_b;
    call.a = matrix("a", p.a, trans_a ? p.k : p.m, trans_a ? p.m : p.k);
    call.b = matrix("b", p.b, trans_b ? p.n : p.k, trans_b ? p.k : p.n);
    call.out =
        tensor_of(p.out, static_cast<DType>(constant(image, "out")), {p.m, p.n}, {p.out_stride, 1});
    if (constant(image, "grouped") != 0) {
        const auto rows = trans_b ? p.n : p.k;
        call.b = tensor_of(p.b.data, static_cast<DType>(constant(image, "b")),
                           {p.groups, rows, trans_b ? p.k : p.n}, {p.b_group, p.b.stride, 1});
        call.group_indptr = ints_of(p.group_indptr, p.groups + 1);
    }
    const Fp8GemmScales& scales = p.scales;
    switch (constant(image, "scales")) {
        case kOneScale:
            call.scale = *number_of(p.scale);
            break;
        case kSideScales:
            call.scale_a = tensor_of(scales.a, DType::fp32, {p.m}, {scales.a_row});
            call.scale_b = of_groups(p, tensor_of(scales.b, DType::fp32, {p.n}, {scales.b_column}),
                                     scales.b_group);
            break;
        default:
            call.scale_a = tensor_of(scales.a, DType::fp32, {p.m, blocks_of(p.k)},
                                     {scales.a_row, scales.a_block});
            call.scale_b =
                of_groups(p,
                          tensor_of(scales.b, DType::fp32, {blocks_of(p.n), blocks_of(p.k)},
                                    {scales.b_column, scales.b_block}),
                          scales.b_group);
    }
    if (p.bias != nullptr) {
        call.bias = of_groups(p, tensor_of(p.bias, static_cast<DType>(p.bias_format), {p.n}, {1}),
                              p.bias_group);
    }
    call.multiplier = number_of(p.multiplier);
    call.amax = number_of(p.amax);
    reference::fp8_gemm(call);
}

}  // namespace

void run_fp8_quantize(std::string_view image, const Fp8QuantizeParams& given) {
    const bool wants_amax = constant(image, "amax") != 0;
    if (wants_amax != (given.counters != nullptr)) {
        throw std::logic_error("counters come with amax");
    }
    check_aligned(image, given);
    Fp8QuantizeParams p = given;
    const std::int64_t last = std::max<std::int64_t>(p.rows - 1, 0);
    float first_multiplier = 0;
    if (wants_amax) {
        const float of_rows = amax_of_rows(image, p, 0, last, p.cols);
        const float of_last = amax_of_rows(image, p, last, p.rows - last, p.last_cols);
        const float amax = of_rows > of_last || std::isnan(of_rows) ? of_rows : of_last;
        first_multiplier = dynamic_fp8_multiplier(amax, p.largest, p.power_of_two != 0);
        if (p.amax != nullptr) *p.amax = amax;
        if (p.new_multiplier != nullptr) {
            *p.new_multiplier = first_multiplier;
            if (p.scale != nullptr) *p.scale = fp8_scale(first_multiplier);
        }
        if (p.state != nullptr && p.state[kFp8StateMultiplier] == 0.0f) {
            p.multiplier = &first_multiplier;
            p.state[kFp8StateScale] = fp8_scale(first_multiplier);
            if (is_usable_amax(amax)) p.state[kFp8StateMultiplier] = first_multiplier;
        }
    }
    write_codes_of_rows(image, p, 0, last, p.cols);
    write_codes_of_rows(image, p, last, p.rows - last, p.last_cols);
}

void run_fp8_quantize_rows(std::string_view image, const Fp8ScalesParams& p) {
    if (constant(image, "width") != 1) check_aligned_scales(image, p, true, true);
    run_scales(image, p, reference::Fp8Granularity::row);
}

void run_fp8_quantize_groups(std::string_view image, const Fp8ScalesParams& p) {
    const bool blocks = constant(image, "scale_rows") != 1;
    if (p.tiles_across != (p.cols + kFp8ScaleCols - 1) / kFp8ScaleCols) {
        throw std::logic_error("not a tile for each group of a row");
    }
    check_aligned_scales(image, p, p.wide_x != 0, p.wide_codes != 0);
    run_scales(image, p,
               blocks ? reference::Fp8Granularity::block : reference::Fp8Granularity::group);
}

void run_fp8_gemm(std::string_view image, const Fp8GemmParams& p) {
    check_aligned(image, p);
    if ((p.splits > 1) != (p.partials != nullptr)) throw std::logic_error("splits leave parts");
    multiply(image, p, constant(image, "trans_a") != 0, constant(image, "trans_b") != 0);
}

void run_fp8_gemm_wgmma(std::string_view image, const Fp8GemmWgmmaParams& p) {
    const Fp8GemmParams& gemm = p.gemm;
    const bool swap = constant(image, "swap") != 0;
    if (address_of(swap ? p.v : p.u) != gemm.a.data ||
        address_of(swap ? p.u : p.v) != gemm.b.data) {
        throw std::logic_error("maps of other operands");
    }
    if (constant(image, "pieces") != 0 && address_of(p.out) != gemm.out) {
        throw std::logic_error("a map of another output");
    }
    check_begin(gemm.a.data, stride_of(gemm.m, gemm.a.stride), 16);
    check_begin(gemm.b.data, stride_of(gemm.n, gemm.b.stride), 16);
    if (gemm.out_vectors != 0 || constant(image, "pieces") != 0) {
        const int element = size_of(static_cast<DType>(constant(image, "out")));
        check_begin(gemm.out, stride_of(gemm.m, gemm.out_stride) * element, 16);
    }
    if (gemm.partials != nullptr) throw std::logic_error("clusters leave no parts");
    if (gemm.splits != constant(image, "splits")) throw std::logic_error("a cluster of others");
    const int k_tiles = (gemm.k + kFp8WgmmaTileK - 1) / kFp8WgmmaTileK;
    if ((gemm.splits - 1) * gemm.split_tiles >= k_tiles ||
        gemm.splits * gemm.split_tiles < k_tiles) {
        throw std::logic_error("k is not divided among the splits");
    }
    multiply(image, gemm, false, true);
}

void run_column_sums(std::string_view image, const ColumnSumsParams& p) {
    if (p.splits > 1 && (p.parts == nullptr || p.arrived == nullptr)) {
        throw std::logic_error("splits need memory to meet in");
    }
    if (p.wide != 0) {
        const int element = size_of(static_cast<DType>(constant(image, "format")));
        check_begin(p.x, stride_of(p.rows, p.x_stride) * element, 16);
    }
    reference::column_sums(
        tensor_of(p.x, static_cast<DType>(constant(image, "format")), {p.rows, p.cols},
                  {p.x_stride, 1}),
        tensor_of(p.out, static_cast<DType>(constant(image, "out")), {p.cols}, {1}));
}

}  // namespace jitney::tests
