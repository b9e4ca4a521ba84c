// Where the rows of the tensors of a call lie: see attention_core.hpp for what is asked of Queries
// and Keys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jitney/tensor.hpp"
#include "operations/attention/reference.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

// Rows of heads, [outer, position, heads, head_dim] by strides; outer is a batch or a page.
struct HeadRows {
    Tensor tensor;
    std::int64_t outer_stride = 0;
    std::int64_t row_stride = 0;

    static HeadRows of_batch(const Tensor& given);   // of four dimensions
    static HeadRows of_tokens(const Tensor& given);  // [tokens, heads, head_dim]
    static HeadRows of_slots(const Tensor& given);   // [slots, heads, head_dim]: pages of one

    int last() const { return tensor.ndim - 1; }
    std::int64_t heads() const { return tensor.shape[static_cast<std::size_t>(last() - 1)]; }
    std::int64_t dim() const { return tensor.shape[static_cast<std::size_t>(last())]; }
    Row row(std::int64_t outer, std::int64_t position, std::int64_t head) const {
        const std::int64_t head_stride = tensor.strides[static_cast<std::size_t>(last() - 1)];
        return row_of(tensor, outer * outer_stride + position * row_stride + head * head_stride,
                      last());
    }
};

// A one-dimensional int32 tensor, or a row of one of two dimensions.
class Indices {
  public:
    Indices() = default;
    Indices(const std::int32_t* data, std::int64_t stride) : data_(data), stride_(stride) {}
    std::int64_t operator[](std::int64_t i) const { return data_[i * stride_]; }

  private:
    const std::int32_t* data_ = nullptr;
    std::int64_t stride_ = 1;
};

class CallQueries {
  public:
    // Of a checked call; `indptr` is what its caller calls qo_indptr.
    explicit CallQueries(const Attention& call, const std::string& indptr = "qo_indptr");

    std::int64_t requests() const { return static_cast<std::int64_t>(lengths_.size()); }
    std::int64_t length(std::int64_t request) const { return lengths_[at(request)]; }
    std::int64_t heads() const { return q_.heads(); }
    Row query(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return q_.row(request, first_[at(request)] + position, head);
    }
    Row out(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return out_.row(request, first_[at(request)] + position, head);
    }
    float* lse(std::int64_t request, std::int64_t position, std::int64_t head) const;

  private:
    static std::size_t at(std::int64_t request) { return static_cast<std::size_t>(request); }

    HeadRows q_;
    HeadRows out_;
    std::optional<Tensor> lse_;
    std::vector<std::int64_t> first_;  // query of each request; dense: 0
    std::vector<std::int64_t> lengths_;
};

class CallKeys {
  public:
    // Of a checked call of so many requests. The page tables are not read.
    CallKeys(const Attention& call, std::int64_t requests);

    // That the pool has the pages of a request's keys from `first` on. Those before may be
    // anything: nobody looks at them.
    void check_pages(const Attention& call, std::int64_t request, std::int64_t first) const;

    std::int64_t length(std::int64_t request) const { return lengths_[at(request)]; }
    // The page and the place in it where a key of a paged call lies; the request and the key of
    // others.
    std::pair<std::int64_t, std::int64_t> place(std::int64_t request, std::int64_t position) const {
        if (pages_.empty()) return {request, first_[at(request)] + position};
        return {pages_[at(request)][position / page_size_], position % page_size_};
    }
    std::int64_t heads() const { return k_.heads(); }
    std::int64_t key_dim() const { return k_.dim(); }
    std::int64_t value_dim() const { return v_.dim(); }
    Row key(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return row(k_, request, position, head);
    }
    Row value(std::int64_t request, std::int64_t position, std::int64_t head) const {
        return row(v_, request, position, head);
    }

  private:
    static std::size_t at(std::int64_t request) { return static_cast<std::size_t>(request); }
    Row row(const HeadRows& rows, std::int64_t request, std::int64_t position,
            std::int64_t head) const {
        const auto [outer, inner] = place(request, position);
        return rows.row(outer, inner, head);
    }
    void find_pages(const Attention& call, std::int64_t requests);
    void find_lengths(const Attention& call, std::int64_t requests);
    void check_length(const Attention& call, std::int64_t request) const;

    HeadRows k_;
    HeadRows v_;
    std::vector<std::int64_t> first_;  // key of each request; not ragged: 0
    std::vector<std::int64_t> lengths_;
    std::int64_t page_size_ = 1;
    std::vector<Indices> pages_;          // of each request; empty: not paged
    std::vector<std::int64_t> capacity_;  // keys that the tables have room for
};

// A new row of a request, and the key that it becomes.
struct AppendedRow {
    std::int64_t request;
    std::int64_t from;
    std::int64_t to;
};

// That no two new keys are written to one place.
void check_appended_rows(const CallKeys& keys, std::span<const AppendedRow> rows);

// The rows of new_k that have a place: where a request is shorter, the first of its have none.
std::vector<AppendedRow> appended_rows(const Attention& call, const CallKeys& keys,
                                       std::int64_t requests);

// Writes the new rows to where the last keys of each request stand.
void append(const Attention& call, const CallKeys& keys, std::int64_t requests);

}  // namespace jitney::reference
