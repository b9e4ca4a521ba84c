#include "operations/attention/reference_sources.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/steps.hpp"
#include "operations/reference/check.hpp"

namespace jitney::reference {

namespace {

std::string text(std::int64_t number) {
    return std::to_string(number);
}

Indices indices(const Tensor& tensor, const std::string& name, std::int64_t count) {
    require_host(tensor, name);
    require(tensor.dtype == DType::int32, name + " must be int32");
    require_shape(tensor, name, {count});
    return {static_cast<const std::int32_t*>(tensor.data), step_of(tensor, 0)};
}

Indices table_row(const Tensor& table, std::int64_t row) {
    return {static_cast<const std::int32_t*>(table.data) + row * step_of(table, 0),
            step_of(table, 1)};
}

void require_table(const Tensor& table, const std::string& name) {
    require_host(table, name);
    require(table.dtype == DType::int32, name + " must be int32");
    require(table.ndim == 2, name + " has the shape " + text_of_shape(table) +
                                 "; it must have two dimensions, requests and columns");
}

std::int64_t entry(const Tensor& tensor, std::int64_t i) {
    return static_cast<const std::int32_t*>(tensor.data)[i * step_of(tensor, 0)];
}

// "block_table[1, 3]", which names page i of a request.
std::string page_name(const Attention& call, std::int64_t request, std::int64_t i) {
    if (call.kv_page_indices) {
        return "kv_page_indices[" + text(entry(*call.kv_page_indptr, request) + i) + "]";
    }
    if (call.block_table) return "block_table[" + text(request) + ", " + text(i) + "]";
    return "req_to_token[" + text(entry(*call.req_pool_indices, request)) + ", " + text(i) + "]";
}

// The beginnings of the parts that an indptr tensor makes of [0, total), and the end of the last.
std::vector<std::int64_t> parts(const Tensor& tensor, const std::string& name,
                                std::int64_t requests, std::int64_t total) {
    const Indices ends = indices(tensor, name, requests + 1);
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i <= requests; ++i) {
        const std::int64_t low = i == 0 ? 0 : result.back();
        require(ends[i] >= low && ends[i] <= total, name + "[" + text(i) + "] is " + text(ends[i]) +
                                                        "; it must lie between " + text(low) +
                                                        " and " + text(total));
        result.push_back(ends[i]);
    }
    return result;
}

std::vector<std::int64_t> lengths_of(const std::vector<std::int64_t>& parts) {
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 1; i < parts.size(); ++i)
        lengths.push_back(parts[i] - parts[i - 1]);
    return lengths;
}

}  // namespace

// What a stride of one that has no neighbour says is nowhere added up.
HeadRows HeadRows::of_batch(const Tensor& given) {
    const Tensor tensor = with_steps(given);
    return {tensor, tensor.strides[0], tensor.strides[1]};
}

HeadRows HeadRows::of_tokens(const Tensor& given) {
    const Tensor tensor = with_steps(given);
    return {tensor, 0, tensor.strides[0]};
}

HeadRows HeadRows::of_slots(const Tensor& given) {
    const Tensor tensor = with_steps(given);
    return {tensor, tensor.strides[0], 0};
}

CallQueries::CallQueries(const Attention& call, const std::string& indptr) {
    if (call.lse) lse_ = with_steps(*call.lse);
    if (!call.qo_indptr) {
        q_ = HeadRows::of_batch(call.q);
        out_ = HeadRows::of_batch(call.out);
        first_.assign(at(call.q.shape[0]), 0);
        lengths_.assign(at(call.q.shape[0]), call.q.shape[1]);
        return;
    }
    q_ = HeadRows::of_tokens(call.q);
    out_ = HeadRows::of_tokens(call.out);
    first_ = parts(*call.qo_indptr, indptr, call.qo_indptr->shape[0] - 1, call.q.shape[0]);
    lengths_ = lengths_of(first_);
}

float* CallQueries::lse(std::int64_t request, std::int64_t position, std::int64_t head) const {
    if (!lse_) return nullptr;
    const auto& strides = lse_->strides;
    const std::int64_t offset =
        lse_->ndim == 3 ? request * strides[0] + head * strides[1] + position * strides[2]
                        : (first_[at(request)] + position) * strides[0] + head * strides[1];
    return static_cast<float*>(lse_->data) + offset;
}

CallKeys::CallKeys(const Attention& call, std::int64_t requests) : first_(at(requests), 0) {
    const bool paged = call.req_to_token || call.block_table || call.kv_page_indices;
    const auto rows_of = paged ? (call.k.ndim == 3 ? HeadRows::of_slots : HeadRows::of_batch)
                               : (call.k.ndim == 3 ? HeadRows::of_tokens : HeadRows::of_batch);
    k_ = rows_of(call.k);
    v_ = rows_of(call.v);
    if (paged) {
        page_size_ = call.k.ndim == 3 ? 1 : call.k.shape[1];
        require(page_size_ > 0, "the page size, the second size of k, is 0; it must be at least 1");
        find_pages(call, requests);
    } else if (call.k.ndim == 4) {
        capacity_.assign(at(requests), call.k.shape[1]);
    }
    find_lengths(call, requests);
}

void CallKeys::find_pages(const Attention& call, std::int64_t requests) {
    if (call.kv_page_indices) {
        const Tensor& list = *call.kv_page_indices;
        indices(list, "kv_page_indices", list.shape[0]);
        require(call.kv_page_indptr && call.last_page_len,
                "kv_page_indices comes with kv_page_indptr and last_page_len");
        const auto ends = parts(*call.kv_page_indptr, "kv_page_indptr", requests, list.shape[0]);
        const Indices fill = indices(*call.last_page_len, "last_page_len", requests);
        for (std::int64_t i = 0; i < requests; ++i) {
            const std::int64_t count = ends[at(i + 1)] - ends[at(i)];
            pages_.emplace_back(
                static_cast<const std::int32_t*>(list.data) + ends[at(i)] * step_of(list, 0),
                step_of(list, 0));
            require(count == 0 || (fill[i] >= 1 && fill[i] <= page_size_),
                    "last_page_len[" + text(i) + "] is " + text(fill[i]) +
                        "; it must be from 1 to the page size, " + text(page_size_));
            lengths_.push_back(count == 0 ? 0 : (count - 1) * page_size_ + fill[i]);
            capacity_.push_back(count * page_size_);
        }
        return;
    }
    const Tensor& table = call.req_to_token ? *call.req_to_token : *call.block_table;
    require_table(table, call.req_to_token ? "req_to_token" : "block_table");
    std::optional<Indices> rows;
    if (call.req_to_token) {
        require(call.req_pool_indices.has_value(), "req_to_token comes with req_pool_indices");
        rows = indices(*call.req_pool_indices, "req_pool_indices", requests);
    }
    require(rows || table.shape[0] == requests, "block_table has " + text(table.shape[0]) +
                                                    " rows; it must have one for each of the " +
                                                    text(requests) + " requests");
    for (std::int64_t i = 0; i < requests; ++i) {
        const std::int64_t row = rows ? (*rows)[i] : i;
        require(row >= 0 && row < table.shape[0], "req_pool_indices[" + text(i) + "] is " +
                                                      text(row) + ", and req_to_token has " +
                                                      text(table.shape[0]) + " rows");
        pages_.push_back(table_row(table, row));
    }
    capacity_.assign(at(requests), table.shape[1] * page_size_);
}

void CallKeys::find_lengths(const Attention& call, std::int64_t requests) {
    const bool paged = !capacity_.empty() && (call.req_to_token || call.block_table);
    if (call.kv_page_indices) {
        // Known already.
    } else if (call.kv_indptr) {
        const std::int64_t most =
            paged ? std::int64_t{1} << 31 : call.k.shape[0];  // of all requests together
        auto ends = parts(*call.kv_indptr, "kv_indptr", requests, most);
        lengths_ = lengths_of(ends);
        if (!paged) first_ = std::move(ends);
    } else if (call.kv_lens) {
        const Indices lens = indices(*call.kv_lens, "kv_lens", requests);
        for (std::int64_t i = 0; i < requests; ++i)
            lengths_.push_back(lens[i]);
    } else {
        require(pages_.empty() || requests == 0, "paged keys come with kv_lens or kv_indptr");
        lengths_ = capacity_;
    }
    for (std::int64_t i = 0; i < requests && !capacity_.empty(); ++i)
        check_length(call, i);
}

void CallKeys::check_length(const Attention& call, std::int64_t request) const {
    const std::int64_t length = lengths_[at(request)];
    const std::int64_t room = capacity_[at(request)];
    if (length >= 0 && length <= room) return;
    const std::string where =
        call.req_to_token ? "req_to_token" : (call.block_table ? "block_table" : "k");
    const std::string limit = where + " has room for " + text(room) + " keys a request";
    if (!call.kv_indptr) {
        require(false, "kv_lens[" + text(request) + "] is " + text(length) +
                           "; it must be 0 or more, and " + limit);
    }
    require(false, "kv_indptr[" + text(request + 1) + "] is " +
                       text(entry(*call.kv_indptr, request + 1)) + ", which gives request " +
                       text(request) + " " + text(length) + " keys, and " + limit);
}

void CallKeys::check_pages(const Attention& call, std::int64_t request, std::int64_t first) const {
    if (pages_.empty() || first >= lengths_[at(request)]) return;
    const std::int64_t pages = k_.tensor.shape[0];
    for (std::int64_t i = first / page_size_; i * page_size_ < lengths_[at(request)]; ++i) {
        const std::int64_t page = pages_[at(request)][i];
        if (page >= 0 && page < pages) continue;
        require(false, page_name(call, request, i) + " is " + text(page) + ", and the pool has " +
                           text(pages) + (k_.tensor.ndim == 3 ? " slots" : " pages") +
                           ", numbered from 0");
    }
}

std::vector<AppendedRow> appended_rows(const Attention& call, const CallKeys& keys,
                                       std::int64_t requests) {
    std::vector<AppendedRow> rows;
    if (!call.new_k) return rows;
    const std::int64_t new_len = call.new_k->shape[1];
    for (std::int64_t request = 0; request < requests; ++request) {
        const std::int64_t first = keys.length(request) - new_len;
        for (std::int64_t i = std::max<std::int64_t>(0, -first); i < new_len; ++i)
            rows.push_back({request, i, first + i});
    }
    return rows;
}

void check_appended_rows(const CallKeys& keys, std::span<const AppendedRow> rows) {
    if (keys.heads() == 0) return;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> taken;
    for (const AppendedRow& row : rows) {
        const auto place = keys.place(row.request, row.to);
        const auto [other, added] = taken.emplace(place, row.request);
        if (added) continue;
        const std::string who =
            other->second == row.request
                ? "request " + text(row.request) + " appends two keys"
                : "requests " + text(other->second) + " and " + text(row.request) + " both append";
        require(false, who + " to place " + text(place.second) + " of page " + text(place.first) +
                           " of k; a new key needs a place of its own");
    }
}

void append(const Attention& call, const CallKeys& keys, std::int64_t requests) {
    if (!call.new_k) return;
    const HeadRows new_k = HeadRows::of_batch(*call.new_k);
    const HeadRows new_v = HeadRows::of_batch(*call.new_v);
    std::vector<double> values(static_cast<std::size_t>(std::max(new_k.dim(), new_v.dim())));
    for (const auto& [request, from, to] : appended_rows(call, keys, requests)) {
        for (std::int64_t head = 0; head < keys.heads(); ++head) {
            read_row(new_k.row(request, from, head), new_k.dim(), values.data());
            write_row(keys.key(request, to, head), new_k.dim(), values.data());
            read_row(new_v.row(request, from, head), new_v.dim(), values.data());
            write_row(keys.value(request, to, head), new_v.dim(), values.data());
        }
    }
}

}  // namespace jitney::reference
