#include "operations/fp8_quantize/reference.hpp"
#include "kernel_sources/fp8/state.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernel_sources/fp8/quantize_scales.h"
#include "kernel_sources/fp8/scale.h"
#include "operations/reference/check.hpp"
#include "operations/reference/numeric.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

constexpr std::int64_t kRowsATask = 16;

bool is_fp8(DType dtype) {
    return dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2;
}

void check(const Fp8Quantize& call) {
    require_host(call.x, "x");
    require(call.x.ndim == 2,
            "x has the shape " + text_of_shape(call.x) + "; it must be [rows, cols]");
    require(
        call.x.dtype == DType::fp32 || call.x.dtype == DType::fp16 || call.x.dtype == DType::bf16,
        "x must be fp32, fp16 or bf16");
    if (call.out) {
        require_host(*call.out, "out");
        require_shape(*call.out, "out", {call.x.shape[0], call.x.shape[1]});
        require(is_fp8(call.out->dtype), "out must be e4m3 or e5m2");
    }
    if (call.out_transposed) {
        require_host(*call.out_transposed, "out_transposed");
        require_shape(*call.out_transposed, "out_transposed", {call.x.shape[1], call.x.shape[0]});
        require(is_fp8(call.out_transposed->dtype), "out_transposed must be e4m3 or e5m2");
    }
    require((!call.dynamic && call.state == nullptr) || call.out || call.out_transposed,
            "a multiplier of x needs out or out_transposed, whose format it scales to");
    if (call.granularity == Fp8Granularity::tensor) return;
    require(call.out && call.scale && call.dynamic,
            "several scales need out and scale, and are dynamic");
    const std::int64_t groups = (call.x.shape[1] + kFp8ScaleCols - 1) / kFp8ScaleCols;
    if (call.granularity == Fp8Granularity::row) {
        const bool turned = call.scale->ndim == 2 && call.scale->shape[1] == 1;
        require(call.scale->shape[0] == call.x.shape[0] && (turned || call.scale->ndim == 1),
                "scale must be [rows] or [rows, 1]");
    } else if (call.granularity == Fp8Granularity::group) {
        require_shape(*call.scale, "scale", {call.x.shape[0], groups});
    } else {
        const std::int64_t blocks = (call.x.shape[0] + kFp8ScaleCols - 1) / kFp8ScaleCols;
        require_shape(*call.scale, "scale", {blocks, groups});
    }
}

float* number(const Tensor& tensor) {
    return static_cast<float*>(tensor.data);
}

std::byte* address_of(const Tensor& matrix, std::int64_t row, std::int64_t col) {
    return static_cast<std::byte*>(matrix.data) +
           (row * matrix.strides[0] + col * matrix.strides[1]) * size_of(matrix.dtype);
}

float value_at(const Tensor& x, std::int64_t row, std::int64_t col) {
    const std::byte* address = address_of(x, row, col);
    switch (x.dtype) {
        case DType::fp16:
            return from_fp16(load_bits<std::uint16_t>(address));
        case DType::bf16:
            return from_bf16(load_bits<std::uint16_t>(address));
        default:
            return load_bits<float>(address);
    }
}

// Calls body(row) for every row of x, tasks of some rows at a time.
template <class Body>
void for_rows(const Tensor& x, Body body) {
    const std::int64_t rows = x.shape[0];
    parallel_for((rows + kRowsATask - 1) / kRowsATask, [&](std::int64_t task) {
        const std::int64_t end = std::min(rows, (task + 1) * kRowsATask);
        for (std::int64_t row = task * kRowsATask; row < end; ++row)
            body(row);
    });
}

// As the bits of floats that are not negative: NaN lies above infinity.
std::uint32_t amax_bits(const Tensor& x, std::int64_t row, std::int64_t first, std::int64_t end) {
    std::uint32_t largest = 0;
    for (std::int64_t col = first; col < end; ++col) {
        largest =
            std::max(largest, std::bit_cast<std::uint32_t>(value_at(x, row, col)) & 0x7FFFFFFFU);
    }
    return largest;
}

float amax_of(const Tensor& x) {
    std::atomic<std::uint32_t> largest{0};
    for_rows(x, [&](std::int64_t row) {
        const std::uint32_t of_row = amax_bits(x, row, 0, x.shape[1]);
        std::uint32_t seen = largest.load();
        while (seen < of_row && !largest.compare_exchange_weak(seen, of_row)) {
        }
    });
    return std::bit_cast<float>(largest.load());
}

void write_row(const Tensor& x, const Tensor& out, bool transposed, std::int64_t row,
               std::int64_t first, std::int64_t end, float multiplier) {
    for (std::int64_t col = first; col < end; ++col) {
        const float scaled = value_at(x, row, col) * multiplier;
        const std::uint8_t code = out.dtype == DType::fp8_e4m3 ? to_e4m3(scaled) : to_e5m2(scaled);
        store_bits(transposed ? address_of(out, col, row) : address_of(out, row, col), code);
    }
}

void write_codes(const Tensor& x, const Tensor& out, bool transposed, float multiplier) {
    for_rows(x, [&](std::int64_t row) {
        write_row(x, out, transposed, row, 0, x.shape[1], multiplier);
    });
}

float largest_of(DType codes) {
    return codes == DType::fp8_e4m3 ? kE4m3Largest : kE5m2Largest;
}

// A part of x after the other: down by rows, across by columns.
void write_parts(const Fp8Quantize& call, std::int64_t part_rows, std::int64_t part_cols) {
    const Tensor& x = call.x;
    const std::int64_t rows = x.shape[0];
    const std::int64_t cols = x.shape[1];
    const std::int64_t step_across = call.scale->ndim == 2 ? call.scale->strides[1] : 0;
    // Rows without columns have a part, of nothing.
    const std::int64_t across =
        part_cols == cols ? 1 : (cols + part_cols - 1) / std::max<std::int64_t>(part_cols, 1);
    parallel_for((rows + part_rows - 1) / part_rows, [&](std::int64_t down) {
        const std::int64_t row_end = std::min(rows, (down + 1) * part_rows);
        for (std::int64_t part = 0; part < across; ++part) {
            const std::int64_t first = part * part_cols;
            const std::int64_t end = std::min(cols, first + part_cols);
            std::uint32_t largest = 0;
            for (std::int64_t row = down * part_rows; row < row_end; ++row)
                largest = std::max(largest, amax_bits(x, row, first, end));
            const float multiplier = dynamic_fp8_multiplier(
                std::bit_cast<float>(largest), largest_of(call.out->dtype), call.power_of_two);
            number(*call.scale)[down * call.scale->strides[0] + part * step_across] =
                fp8_scale(multiplier);
            for (std::int64_t row = down * part_rows; row < row_end; ++row)
                write_row(x, *call.out, false, row, first, end, multiplier);
        }
    });
}

}  // namespace

void fp8_quantize(const Fp8Quantize& call) {
    check(call);
    switch (call.granularity) {
        case Fp8Granularity::tensor:
            break;
        case Fp8Granularity::row:
            return write_parts(call, 1, call.x.shape[1]);
        case Fp8Granularity::group:
            return write_parts(call, 1, kFp8ScaleCols);
        case Fp8Granularity::block:
            return write_parts(call, kFp8ScaleCols, kFp8ScaleCols);
    }
    float multiplier = call.multiplier && !call.dynamic ? *number(*call.multiplier) : 1.0F;
    if (call.by_scale) multiplier = 1.0F / multiplier;
    if (call.state != nullptr) multiplier = call.state[kFp8StateMultiplier];
    const bool is_new = call.state != nullptr && multiplier == 0.0F;
    if (call.amax || call.dynamic || is_new) {
        const float amax = amax_of(call.x);
        if (call.amax) *number(*call.amax) = amax;
        if (call.dynamic || is_new) {
            const DType out = call.out ? call.out->dtype : call.out_transposed->dtype;
            multiplier = dynamic_fp8_multiplier(amax, largest_of(out), call.power_of_two);
        }
        if (call.dynamic && call.multiplier) *number(*call.multiplier) = multiplier;
        if (is_new) {
            call.state[kFp8StateScale] = fp8_scale(multiplier);
            if (is_usable_amax(amax)) call.state[kFp8StateMultiplier] = multiplier;
        }
    }
    if (call.scale) *number(*call.scale) = fp8_scale(multiplier);
    if (call.out) write_codes(call.x, *call.out, false, multiplier);
    if (call.out_transposed) write_codes(call.x, *call.out_transposed, true, multiplier);
}

}  // namespace jitney::reference
