#include "operations/append_kv/reference.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/steps.hpp"
#include "operations/attention/reference_sources.hpp"
#include "operations/reference/cache_fields.hpp"
#include "operations/reference/check.hpp"

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
Tensor rows_of(const Tensor& given, std::int64_t request, std::int64_t first, std::int64_t count) {
    // `first` may be the end of the rows, where none of them is left.
    const Tensor tensor = with_steps(given);
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

    // The first of them that has a place.
    std::int64_t placed() const { return std::clamp<std::int64_t>(-key, 0, count); }
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

std::vector<AppendedRow> placed_rows(const std::vector<NewRows>& requests) {
    std::vector<AppendedRow> rows;
    for (const NewRows& request : requests) {
        for (std::int64_t i = request.placed(); i < request.count; ++i)
            rows.push_back({request.request, i, request.key + i});
    }
    return rows;
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

// The positions of a request's new rows from `begin` on: the call's, or their places in the
// request.
std::vector<std::int64_t> positions_of(const AppendKv& call, const NewRows& rows,
                                       std::int64_t begin) {
    std::vector<std::int64_t> positions;
    for (std::int64_t i = begin; i < rows.count; ++i) {
        const std::int64_t batch = call.new_indptr ? 0 : rows.request;
        const std::int64_t token = rows.first + i;
        positions.push_back(call.positions ? position_at(*call.positions, batch, token)
                                           : rows.key + i);
        if (has_row(*call.cos, positions.back())) continue;
        refuse_position(*call.cos, positions.back(),
                        call.positions ? position_name(*call.positions, batch, token) + " is"
                                       : "new row " + std::to_string(i) + " of request " +
                                             std::to_string(rows.request) + " stands at position");
    }
    return positions;
}

// Rotates rows of one request from `begin` on, which have these positions.
void rotate(const AppendKv& call, const Tensor& x, const Tensor& out, std::int64_t begin,
            std::vector<std::int64_t>& positions) {
    const auto count = static_cast<std::int64_t>(positions.size());
    Rotary rotation;
    rotation.q = rows_of(x, 0, begin, count);
    rotation.q_out = rows_of(out, 0, begin, count);
    rotation.cos = *call.cos;
    rotation.sin = *call.sin;
    rotation.positions = host_tensor(positions.data(), DType::int64, {count});
    rotation.style = call.style;
    rotary(rotation);
}

void write_keys(const CallKeys& keys, const NewRows& rows, const Tensor& new_k,
                const Tensor& new_v) {
    const auto copy = [](const Row& from, const Row& to, std::int64_t count) {
        for (std::int64_t d = 0; d < count; ++d)
            std::memmove(to.at(d), from.at(d), static_cast<std::size_t>(size_of(from.dtype)));
    };
    for (std::int64_t i = rows.placed(); i < rows.count; ++i) {
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
    const CallQueries rows(same, "new_indptr");
    const CallKeys keys(same, rows.requests());
    require(rows.heads() == keys.heads(), "new_k must have as many heads as k");
    const std::vector<NewRows> requests = rows_of_requests(rows, keys, call);
    for (const NewRows& request : requests)
        keys.check_pages(same, request.request, request.key + request.placed());
    check_appended_rows(keys, placed_rows(requests));

    // All positions are known before the first row is written, so that a wrong one writes nothing.
    // A row that has no place has no position either, but for its query where the call gives one.
    struct Positions {
        std::vector<std::int64_t> of_keys;
        std::int64_t first_query = 0;
        std::vector<std::int64_t> of_queries;
    };
    std::vector<Positions> positions(call.cos ? requests.size() : 0);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        positions[i].of_keys = positions_of(call, requests[i], requests[i].placed());
        if (!call.q) continue;
        positions[i].first_query = call.positions ? 0 : requests[i].placed();
        positions[i].of_queries = positions_of(call, requests[i], positions[i].first_query);
    }

    for (std::size_t i = 0; i < requests.size(); ++i) {
        const NewRows& request = requests[i];
        const auto part = [&request](const Tensor& tensor) {
            return rows_of(tensor, request.request, request.first, request.count);
        };
        Tensor new_k = part(call.new_k);
        std::vector<std::byte> rotated;
        if (call.cos) {
            rotated.resize(static_cast<std::size_t>(new_k.elements() * size_of(new_k.dtype)));
            const Tensor turned = host_tensor(rotated.data(), new_k.dtype,
                                              {1, request.count, new_k.shape[2], new_k.shape[3]});
            rotate(call, new_k, turned, request.placed(), positions[i].of_keys);
            new_k = turned;
        }
        write_keys(keys, request, new_k, part(call.new_v));
        if (call.q) {
            rotate(call, part(*call.q), part(*call.q_out), positions[i].first_query,
                   positions[i].of_queries);
        }
    }
}

}  // namespace jitney::reference
