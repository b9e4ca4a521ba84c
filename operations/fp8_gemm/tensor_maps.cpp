#include "operations/fp8_gemm/tensor_maps.hpp"

#include "operations/tensor_map_bits.hpp"

namespace jitney {
namespace {

using runtime::TensorMapShape;

constexpr std::uint32_t kRowBytes = 128;  // of a box
constexpr std::uint32_t kOutRows = 16;    // that a warp writes at a time

TensorMapShape shape_of(const Tensor& matrix, std::uint32_t rows) noexcept {
    const auto size = static_cast<std::uint64_t>(size_of(matrix.dtype));
    TensorMapShape shape;
    shape.dtype = matrix.dtype;
    shape.swizzle = runtime::Swizzle::bytes128;
    shape.size = {static_cast<std::uint64_t>(matrix.shape[1]),
                  static_cast<std::uint64_t>(matrix.shape[0])};
    shape.stride_bytes = {
        matrix.shape[0] <= 1 ? kNoStride : static_cast<std::uint64_t>(matrix.strides[0]) * size};
    shape.box = {kRowBytes / static_cast<std::uint32_t>(size), rows};
    return shape;
}

std::uint32_t rows_of(const policy::Fp8GemmChoice& choice, std::string_view tile) {
    return static_cast<std::uint32_t>(policy::value_of(choice.spec, tile));
}

struct Maps {
    TensorMapBits& a;
    TensorMapBits& b;
};

Maps maps_of(Fp8GemmWgmmaParams& params, const policy::Fp8GemmChoice& choice) {
    if (policy::value_of(choice.spec, "swap") != 0) return {params.v, params.u};
    return {params.u, params.v};
}

bool stores_by_map(const policy::Fp8GemmChoice& choice) {
    return policy::value_of(choice.spec, "pieces") != 0;
}

void encode_maps(Fp8GemmWgmmaParams& params, const Fp8GemmArgs& args,
                 const policy::Fp8GemmChoice& choice, const void* a, const void* b,
                 const void* out) {
    const Maps maps = maps_of(params, choice);
    encode(maps.a, a, shape_of(args.a, rows_of(choice, "tile_m")));
    encode(maps.b, b, shape_of(rows_of_groups(args.b), rows_of(choice, "tile_n")));
    if (stores_by_map(choice)) encode(params.out, out, shape_of(args.out, kOutRows));
}

}  // namespace

Tensor rows_of_groups(const Tensor& matrices) noexcept {
    if (matrices.ndim < 3) return matrices;
    Tensor rows = matrices;
    rows.ndim = 2;
    rows.shape = {matrices.shape[0] * matrices.shape[1], matrices.shape[2]};
    rows.strides = {matrices.shape[1] == 1 ? matrices.strides[0] : matrices.strides[1],
                    matrices.strides[2]};
    return rows;
}

bool groups_can_be_mapped(const Tensor& matrices) noexcept {
    if (matrices.ndim < 3) return rows_can_be_mapped(matrices);
    const bool without_gaps = matrices.shape[0] <= 1 || matrices.shape[1] <= 1 ||
                              matrices.strides[0] == matrices.shape[1] * matrices.strides[1];
    return without_gaps && rows_can_be_mapped(rows_of_groups(matrices));
}

bool rows_can_be_mapped(const Tensor& matrix) noexcept {
    const auto limit = static_cast<std::int64_t>(kStrideLimit) / size_of(matrix.dtype);
    return matrix.shape[0] <= 1 || (matrix.strides[0] > 0 && matrix.strides[0] < limit);
}

void form_maps(Fp8GemmWgmmaParams& params, const Fp8GemmArgs& args,
               const policy::Fp8GemmChoice& choice) {
    encode_maps(params, args, choice, some_address(), some_address(), some_address());
}

void set_map_addresses(Fp8GemmWgmmaParams& params, const Fp8GemmArgs& args,
                       const policy::Fp8GemmChoice& choice, bool addresses_lead) {
    if (!addresses_lead) {
        encode_maps(params, args, choice, args.a.data, args.b.data, args.out.data);
        return;
    }
    const Maps maps = maps_of(params, choice);
    put_address(maps.a, args.a.data);
    put_address(maps.b, args.b.data);
    if (stores_by_map(choice)) put_address(params.out, args.out.data);
}

}  // namespace jitney
