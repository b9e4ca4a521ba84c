#include "operations/attention/tensor_maps.hpp"

#include "core/steps.hpp"
#include "operations/attention/form.hpp"
#include "operations/tensor_map_bits.hpp"

namespace jitney {
namespace {

using runtime::TensorMapShape;

constexpr std::uint32_t kPanelElements = 64;

// Tensors of a call by their last dimensions, [length, heads, head_dim]; one of three dimensions is
// a single request.
struct Dims {
    std::uint64_t batch;
    std::uint64_t length;
    std::uint64_t heads;
    std::uint64_t head_dim;
    std::uint64_t batch_stride;  // in bytes, as those that follow
    std::uint64_t row_stride;
    std::uint64_t head_stride;
};

std::uint64_t stride_bytes(const Tensor& tensor, std::size_t dim) noexcept {
    if (tensor.shape[dim] <= 1) return kNoStride;
    return static_cast<std::uint64_t>(tensor.strides[dim]) *
           static_cast<std::uint64_t>(size_of(tensor.dtype));
}

Dims dims_of(const Tensor& tensor) noexcept {
    const std::size_t at = tensor.ndim == 4 ? 1 : 0;
    const auto size = [&tensor](std::size_t dim) {
        return static_cast<std::uint64_t>(tensor.shape[dim]);
    };
    return {tensor.ndim == 4 ? size(0) : 1,
            size(at),
            size(at + 1),
            size(at + 2),
            tensor.ndim == 4 ? stride_bytes(tensor, 0) : kNoStride,
            stride_bytes(tensor, at),
            stride_bytes(tensor, at + 1)};
}

TensorMapShape shape_of(const Tensor& tensor, int rank) noexcept {
    TensorMapShape shape;
    shape.rank = rank;
    shape.dtype = tensor.dtype;
    shape.swizzle = runtime::Swizzle::bytes128;
    return shape;
}

// Of Q or out: heads that a tile takes together are a dimension of their own.
TensorMapShape row_shape(const Tensor& tensor, int group) noexcept {
    const Dims dims = dims_of(tensor);
    const auto together = static_cast<std::uint64_t>(group);
    const auto box_group = static_cast<std::uint32_t>(group);
    TensorMapShape shape = shape_of(tensor, 5);
    shape.size = {dims.head_dim, together, dims.length, dims.heads / together, dims.batch};
    shape.stride_bytes = {dims.head_stride, dims.row_stride, dims.head_stride * together,
                          dims.batch_stride};
    shape.box = {kPanelElements, box_group, kWarpgroupRows / box_group, 1, 1};
    return shape;
}

// Of K or V, whose pages are requests of a batch to it. Without a key the map is that of 16 bytes,
// beyond which all is zero.
TensorMapShape key_shape(const Tensor& tensor, int box_keys) noexcept {
    const Dims dims = dims_of(tensor);
    TensorMapShape shape = shape_of(tensor, 4);
    shape.box = {kPanelElements, static_cast<std::uint32_t>(box_keys), 1, 1};
    if (is_empty(tensor)) {
        shape.size = {kNoStride / static_cast<std::uint64_t>(size_of(tensor.dtype)), 1, 1, 1};
        shape.stride_bytes = {kNoStride, kNoStride, kNoStride};
        return shape;
    }
    shape.size = {dims.head_dim, dims.length, dims.heads, dims.batch};
    shape.stride_bytes = {dims.row_stride, dims.head_stride, dims.batch_stride};
    return shape;
}

const void* address_of_keys(const Tensor& tensor, void* zeros) noexcept {
    return is_empty(tensor) ? zeros : tensor.data;
}

// Whether the kernel has boxes of K and V copied, and not rows gathered.
bool maps_keys(const AttentionArgs& args, const PrefillWgmmaParams& params) noexcept {
    return params.box_keys != 0 || !is_paged(kv_form(args));
}

int keys_of_box(const PrefillWgmmaParams& params, int tile_n) noexcept {
    return params.box_keys != 0 ? params.box_keys : tile_n;
}

}  // namespace

bool can_be_mapped(const Tensor& tensor) noexcept {
    if (is_empty(tensor)) return true;  // its map is of zeros elsewhere
    const std::int64_t size = size_of(tensor.dtype);
    for (int i = 0; i + 1 < tensor.ndim; ++i) {
        const auto dim = static_cast<std::size_t>(i);
        if (tensor.shape[dim] <= 1) continue;
        // Heads that are taken together have a common stride, up to 64 times theirs.
        const bool heads = i + 2 == tensor.ndim;
        const auto limit =
            static_cast<std::int64_t>(heads ? kStrideLimit / kWarpgroupRows : kStrideLimit);
        if (tensor.strides[dim] <= 0 || tensor.strides[dim] >= limit / size) return false;
    }
    return true;
}

void form_maps(PrefillWgmmaParams& params, const AttentionArgs& args, int tile_n) {
    const void* const somewhere = some_address();
    const int group = params.attention.group;
    encode(params.q, somewhere, row_shape(args.q, group));
    encode(params.out, somewhere, row_shape(args.out, group));
    if (!maps_keys(args, params)) return;
    const int box_keys = keys_of_box(params, tile_n);
    encode(params.k, somewhere, key_shape(args.k, box_keys));
    encode(params.v, somewhere, key_shape(args.v, box_keys));
}

void set_map_addresses(PrefillWgmmaParams& params, const AttentionArgs& args,
                       const policy::Spec& spec, bool addresses_lead, void* zeros) {
    const void* const k = address_of_keys(args.k, zeros);
    const void* const v = address_of_keys(args.v, zeros);
    const bool keys = maps_keys(args, params);
    if (addresses_lead) {
        put_address(params.q, args.q.data);
        put_address(params.out, args.out.data);
        if (!keys) return;
        put_address(params.k, k);
        put_address(params.v, v);
        return;
    }
    const int group = params.attention.group;
    encode(params.q, args.q.data, row_shape(args.q, group));
    encode(params.out, args.out.data, row_shape(args.out, group));
    if (!keys) return;
    const int box_keys = keys_of_box(params, policy::value_of(spec, "tile_n"));
    encode(params.k, k, key_shape(args.k, box_keys));
    encode(params.v, v, key_shape(args.v, box_keys));
}

}  // namespace jitney
