#include "reference/append_kv.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "reference/attention_sources.hpp"
#include "reference/cache_fields.hpp"
#include "reference/check.hpp"

namespace jitney::reference {

namespace {

// The attention to the same cache, whose queries are the new keys.
Attention as_attention(const AppendKv& call) {
    Attention same;
    same.q = call.new_k;
    same.out = call.new_k;
    copy_cache(same, call);
    same.qo_indptr = call.new_indptr;
    return same;
}

// Rows [first, first + count) of a request, as [1, count, heads, head_dim].
Tensor rows_of(const Tensor& tensor, std::int64_t request, std::int64_t first, std::int64_t count) {
    const bool packed = tensor.ndim == 3;
    const std::size_t row = packed ? 0 : 1;
    const std::int64_t offset =
        first * tensor.strides[row] + (packed ? 0 : request * tensor.strides[0]);
    Tensor part;
    part.data = static_cast<std::byte*>(tensor.data) + offset * size_of(tensor.dtype);
    part.dtype = tensor.dtype;
    part.device = tensor.device;
    part.ndim = 4;
    part.shape = {1, count, tensor.shape[row + 1], tensor.shape[row + 2]};
    part.strides = {0, tensor.strides[row], tensor.strides[row + 1], tensor.strides[row + 2]};
    return part;
}

struct NewRows {
    std::int64_t request;
    std::int64_t first;  // among the packed rows; dense: 0
    std::int64_t count;
    std::int64_t key;  // where the first goes; negative where the request is shorter
};

std::vector<NewRows> rows_of_requests(const CallQueries& rows, const CallKeys& keys,
                                      const AppendKv& call) {
    std::vector<NewRows> all;
    std::int64_t first = 0;
    if (call.new_indptr && rows.requests() > 0) {
        first = *static_cast<const std::int32_t*>(call.new_indptr->data);
    }
    for (std::int64_t i = 0; i < rows.requests(); ++i) {
        const std::int64_t count = rows.length(i);
        all.push_back({i, call.new_indptr ? first : 0, count, keys.length(i) - count});
        first += count;
    }
    return all;
}

// Contiguous.
Tensor host_tensor(void* data, DType dtype, std::initializer_list<std::int64_t> shape) {
    Tensor tensor;
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.device = {DeviceType::cpu, 0};
    tensor.ndim = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.shape.begin());
    std::int64_t stride = 1;
    for (std::size_t dim = shape.size(); dim-- > 0;) {
        tensor.strides[dim] = stride;
        stride *= tensor.shape[dim];
    }
    return tensor;
}

// The positions of a request's new rows: the call's, or their places in the request. `storage`
// holds the latter.
Tensor positions_of(const AppendKv& call, const NewRows& rows, std::vector<std::int64_t>& storage) {
    if (!call.positions) {
        storage.resize(static_cast<std::size_t>(rows.count));
        for (std::int64_t i = 0; i < rows.count; ++i)
            storage[static_cast<std::size_t>(i)] = rows.key + i;
        return host_tensor(storage.data(), DType::int64, {rows.count});
    }
    Tensor part = *call.positions;
    const bool per_request = part.ndim == 2;
    const std::int64_t row = part.strides[per_request ? 1 : 0];
    const std::int64_t request = per_request && part.shape[0] != 1 ? rows.request : 0;
    const std::int64_t offset = request * (per_request ? part.strides[0] : 0) + rows.first * row;
    part.data = static_cast<std::byte*>(part.data) + offset * size_of(part.dtype);
    part.ndim = 1;
    part.shape[0] = rows.count;
    part.strides[0] = row;
    return part;
}

// Rotates `x` into `out`, the rows of one request.
void rotate(const AppendKv& call, const NewRows& rows, const Tensor& x, const Tensor& out) {
    std::vector<std::int64_t> storage;
    Rotary rotation;
    rotation.q = x;
    rotation.q_out = out;
    rotation.cos = *call.cos;
    rotation.sin = *call.sin;
    rotation.positions = positions_of(call, rows, storage);
    rotation.style = call.style;
    rotary(rotation);
}

void write_keys(const CallKeys& keys, const NewRows& rows, const Tensor& new_k,
                const Tensor& new_v) {
    const auto copy = [](const Row& from, const Row& to, std::int64_t count) {
        for (std::int64_t d = 0; d < count; ++d)
            std::memmove(to.at(d), from.at(d), static_cast<std::size_t>(size_of(from.dtype)));
    };
    for (std::int64_t i = std::max<std::int64_t>(0, -rows.key); i < rows.count; ++i) {
        for (std::int64_t head = 0; head < keys.heads(); ++head) {
            copy(Blhd{new_k}.row(0, i, head), keys.key(rows.request, rows.key + i, head),
                 keys.key_dim());
            copy(Blhd{new_v}.row(0, i, head), keys.value(rows.request, rows.key + i, head),
                 keys.value_dim());
        }
    }
}

void check_rows(const AppendKv& call) {
    const int dims = call.new_indptr ? 3 : 4;
    require_heads(call.new_k, "new_k", dims);
    require_heads(call.new_v, "new_v", dims);
    require(call.new_k.dtype == call.k.dtype && call.new_v.dtype == call.v.dtype,
            "new_k and new_v must have the formats of k and v");
    require(call.cos.has_value() == call.sin.has_value(), "cos and sin come together");
    require(call.q.has_value() == call.q_out.has_value(), "q and q_out come together");
    require(!call.q || call.cos, "q is for a rotation: give cos and sin");
    require(call.k.ndim == 3 || call.k.ndim == 4,
            "k has the shape " + text_of_shape(call.k) + "; it must have 3 or 4 dimensions");
}

}  // namespace

void append_kv(const AppendKv& call) {
    check_rows(call);
    const Attention same = as_attention(call);
    const CallQueries rows(same);
    const CallKeys keys(same, rows.requests());
    require(rows.heads() == keys.heads(), "new_k must have as many heads as k");
    const std::vector<NewRows> requests = rows_of_requests(rows, keys, call);
    const std::int64_t heads = keys.heads();
    const std::int64_t dim = keys.key_dim();

    // All keys are rotated before the first is written, so that a wrong position writes nothing.
    std::vector<std::vector<std::byte>> rotated(requests.size());
    std::vector<Tensor> new_keys;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        // Rows that have no place have no position either.
        const std::int64_t skipped =
            call.positions ? 0 : std::clamp<std::int64_t>(-requests[i].key, 0, requests[i].count);
        NewRows kept = requests[i];
        kept.count -= skipped;
        kept.key += skipped;
        new_keys.push_back(
            rows_of(call.new_k, requests[i].request, requests[i].first, requests[i].count));
        if (!call.cos) continue;
        rotated[i].resize(
            static_cast<std::size_t>(requests[i].count * heads * dim * size_of(call.new_k.dtype)));
        const Tensor all =
            host_tensor(rotated[i].data(), call.new_k.dtype, {1, requests[i].count, heads, dim});
        rotate(call, kept, rows_of(new_keys.back(), 0, skipped, kept.count),
               rows_of(all, 0, skipped, kept.count));
        new_keys.back() = all;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const NewRows& request = requests[i];
        write_keys(keys, request, new_keys[i],
                   rows_of(call.new_v, request.request, request.first, request.count));
        if (call.q) {
            rotate(call, request, rows_of(*call.q, request.request, request.first, request.count),
                   rows_of(*call.q_out, request.request, request.first, request.count));
        }
    }
}

}  // namespace jitney::reference
