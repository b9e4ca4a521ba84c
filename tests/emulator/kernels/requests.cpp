#include "tests/emulator/kernels/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tests/support/mask_pattern.hpp"

namespace jitney::emulator {
namespace {

using tests::HostTensor;

std::size_t sized(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

std::int64_t pages_of(const RequestsShape& shape, std::int64_t kv_len) {
    return (kv_len + shape.page_size - 1) / shape.page_size;
}

// More pages than are needed, so that some belong to nobody.
std::int64_t pool_pages(const RequestsShape& shape) {
    std::int64_t pages = 3;
    for (const RequestLengths& request : shape.requests)
        pages += pages_of(shape, request.kv_len);
    return pages;
}

std::vector<std::int64_t> kv_shape(const RequestsShape& shape) {
    std::int64_t total = 0;
    for (const RequestLengths& request : shape.requests)
        total += request.kv_len;
    switch (shape.kv) {
        case KvForm::fixed:
        case KvForm::padded:
            return {shape.batch(), shape.longest_keys(), shape.kv_heads, shape.head_dim};
        case KvForm::packed:
            return {1, total, shape.kv_heads, shape.head_dim};
        default:
            return {pool_pages(shape), shape.page_size, shape.kv_heads, shape.head_dim};
    }
}

std::vector<std::int64_t> q_shape(const RequestsShape& shape) {
    if (shape.packed) return {1, shape.total_queries(), shape.q_heads(), shape.head_dim};
    return {shape.batch(), shape.longest_query(), shape.q_heads(), shape.head_dim};
}

std::vector<std::int64_t> lse_shape(const RequestsShape& shape) {
    if (shape.packed) return {1, shape.total_queries(), shape.q_heads()};
    return {shape.batch(), shape.q_heads(), shape.longest_query()};
}

}  // namespace

double RequestsShape::scale() const {
    return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

std::int64_t RequestsShape::total_queries() const {
    return std::accumulate(
        requests.begin(), requests.end(), std::int64_t{0},
        [](std::int64_t sum, const RequestLengths& request) { return sum + request.q_len; });
}

std::int64_t RequestsShape::longest_query() const {
    std::int64_t longest = 0;
    for (const RequestLengths& request : requests)
        longest = std::max(longest, request.q_len);
    return longest;
}

std::int64_t RequestsShape::longest_keys() const {
    std::int64_t longest = 0;
    for (const RequestLengths& request : requests)
        longest = std::max(longest, request.kv_len);
    return longest;
}

std::string RequestsShape::text() const {
    std::string text = "requests";
    for (const RequestLengths& request : requests)
        text += fmt::format(" {}/{}", request.q_len, request.kv_len);
    text += fmt::format(", heads {}/{}, kv form {}, page_size {}", q_heads(), kv_heads,
                        static_cast<int>(kv), page_size);
    if (packed) text += ", packed";
    if (causal) text += ", causal";
    if (mask) text += ", mask";
    if (window_left >= 0) text += fmt::format(", left {}", window_left);
    if (window_right >= 0) text += fmt::format(", right {}", window_right);
    if (softcap != 0.0) text += fmt::format(", softcap {}", softcap);
    if (alibi) text += ", alibi";
    if (sinks) text += ", sinks";
    if (new_len != 0) text += fmt::format(", append {}", new_len);
    if (far) text += ", far apart";
    return text;
}

Requests::Requests(const RequestsShape& requests, tests::Random& random)
    : shape(requests),
      q(shape.dtype, q_shape(shape), tests::set_apart({}, 4, 3)),
      k(shape.dtype, kv_shape(shape), tests::set_apart({shape.pool_order, {}}, 4, 4)),
      v(shape.dtype, kv_shape(shape), tests::set_apart({shape.pool_order, {}}, 4, 1)),
      out(shape.dtype, q_shape(shape)),
      lse(DType::fp32, lse_shape(shape)),
      slopes(DType::fp32, {shape.q_heads()}),
      sinks(DType::fp32, {shape.q_heads()}),
      new_k(shape.dtype, {shape.batch(), shape.new_len, shape.kv_heads, shape.head_dim},
            tests::set_apart({}, 4, 2)),
      new_v(shape.dtype, {shape.batch(), shape.new_len, shape.kv_heads, shape.head_dim},
            tests::set_apart({}, 4, 5)) {
    make_tables(random);
    fill(random);
}

void Requests::make_tables(tests::Random& random) {
    tables.qo_indptr.push_back(0);
    tables.kv_indptr.push_back(0);
    for (const RequestLengths& request : shape.requests) {
        tables.qo_indptr.push_back(tables.qo_indptr.back() + static_cast<int>(request.q_len));
        tables.kv_indptr.push_back(tables.kv_indptr.back() + static_cast<int>(request.kv_len));
        tables.kv_lens.push_back(static_cast<int>(request.kv_len));
    }
    if (is_paged(shape.kv)) make_page_tables(random);
    const bool indptr = shape.kv == KvForm::packed || shape.kv == KvForm::token_table;
    const bool lengths = shape.kv == KvForm::padded || shape.kv == KvForm::block_table;
    if (!shape.packed) tables.qo_indptr.clear();
    if (!indptr) tables.kv_indptr.clear();
    if (!lengths) tables.kv_lens.clear();
}

void Requests::make_page_tables(tests::Random& random) {
    std::vector<int> shuffled(sized(k.shape()[0]));
    std::iota(shuffled.begin(), shuffled.end(), 0);
    for (std::size_t i = shuffled.size(); i > 1; --i)
        std::swap(shuffled[i - 1], shuffled[sized(random.integer(0, static_cast<int>(i) - 1))]);
    std::size_t next = 0;
    for (const RequestLengths& request : shape.requests) {
        std::vector<int>& pages = pages_.emplace_back();
        for (std::int64_t i = 0; i < pages_of(shape, request.kv_len); ++i)
            pages.push_back(shuffled[next++]);
    }

    if (shape.kv == KvForm::page_lists) {
        tables.kv_page_indptr.push_back(0);
        for (std::size_t i = 0; i < pages_.size(); ++i) {
            tables.page_table.insert(tables.page_table.end(), pages_[i].begin(), pages_[i].end());
            tables.kv_page_indptr.push_back(static_cast<int>(tables.page_table.size()));
            const std::int64_t full = (static_cast<std::int64_t>(pages_[i].size()) - 1);
            tables.last_page_len.push_back(
                static_cast<int>(shape.requests[i].kv_len - full * shape.page_size));
        }
        return;
    }
    // Rows of the table; those of the token table in another order, with one that nobody has.
    tables.table_stride = static_cast<int>(pages_of(shape, shape.longest_keys())) + 1;
    const std::int64_t rows = shape.batch() + (shape.kv == KvForm::token_table ? 1 : 0);
    tables.page_table.assign(sized(rows * tables.table_stride), -1);
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        if (shape.kv == KvForm::token_table) {
            tables.request_rows.push_back(static_cast<int>(shape.batch() - request));
        }
        const std::vector<int>& pages = pages_[sized(request)];
        for (std::size_t page = 0; page < pages.size(); ++page) {
            tables.page_table[table_entry(request, static_cast<std::int64_t>(page))] = pages[page];
        }
    }
}

std::size_t Requests::table_entry(std::int64_t request, std::int64_t page) const {
    if (shape.kv == KvForm::page_lists) {
        return sized(tables.kv_page_indptr[sized(request)] + page);
    }
    const std::int64_t row =
        shape.kv == KvForm::token_table ? tables.request_rows[sized(request)] : request;
    return sized(row * tables.table_stride + page);
}

std::int64_t Requests::first_used(std::int64_t request) const {
    const RequestLengths& lengths = shape.requests[sized(request)];
    std::int64_t first = lengths.kv_len;
    if (lengths.q_len > 0) {
        first = shape.window_left < 0 ? 0 : lengths.kv_len - lengths.q_len - shape.window_left;
    }
    return std::clamp<std::int64_t>(std::min(first, lengths.kv_len - shape.new_len), 0,
                                    lengths.kv_len);
}

std::vector<bool> Requests::entries_of_pages() const {
    std::vector<bool> entries(tables.page_table.size());
    for (std::int64_t request = 0; request < shape.batch() && is_paged(shape.kv); ++request) {
        const std::int64_t pages = pages_of(shape, shape.requests[sized(request)].kv_len);
        for (std::int64_t page = first_used(request) / shape.page_size; page < pages; ++page)
            entries[table_entry(request, page)] =
                first_used(request) != shape.requests[sized(request)].kv_len;
    }
    return entries;
}

KeyPlace Requests::place(std::int64_t request, std::int64_t key) const {
    if (is_paged(shape.kv)) {
        return {pages_[sized(request)][sized(key / shape.page_size)], key % shape.page_size};
    }
    if (shape.kv != KvForm::packed) return {request, key};
    std::int64_t first = 0;
    for (std::int64_t before = 0; before < request; ++before)
        first += shape.requests[sized(before)].kv_len;
    return {0, first + key};
}

std::vector<bool> Requests::elements_of_keys(std::int64_t leave_out) const {
    const std::int64_t row = shape.kv_heads * shape.head_dim;
    std::vector<bool> elements(sized(k.elements()));
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        const std::int64_t count = shape.requests[sized(request)].kv_len - leave_out;
        for (std::int64_t key = first_used(request); key < count; ++key) {
            const KeyPlace at = place(request, key);
            const std::int64_t first = (at.outer * k.shape()[1] + at.inner) * row;
            std::fill_n(elements.begin() + first, row, true);
        }
    }
    return elements;
}

std::vector<bool> Requests::elements_of_mask() const {
    std::vector<bool> elements(sized(mask->elements()));
    std::size_t at = 0;
    for (const RequestLengths& request : shape.requests) {
        for (std::int64_t head = 0; head < shape.q_heads(); ++head) {
            for (std::int64_t query = 0; query < shape.longest_query(); ++query) {
                for (std::int64_t key = 0; key < shape.longest_keys(); ++key)
                    elements[at++] = query < request.q_len && key < request.kv_len;
            }
        }
    }
    return elements;
}

void Requests::fill(tests::Random& random) {
    q.fill_normal(random);
    new_k.fill_normal(random);
    new_v.fill_normal(random);
    const std::vector<bool> cached = elements_of_keys(shape.new_len);
    for (HostTensor* tensor : {&k, &v}) {
        for (std::int64_t i = 0; i < tensor->elements(); ++i) {
            if (cached[sized(i)]) tensor->set(i, random.normal());
        }
    }
    slopes.fill([](std::int64_t head) { return std::exp2(-static_cast<double>(head + 1)); });
    // Some so far above all scores that their exponential overflows beside them.
    sinks.fill([&random](std::int64_t) {
        return random.chance(0.15) ? random.uniform(90.0, 300.0) : random.uniform(-2.0, 3.0);
    });
    if (shape.mask) {
        mask.emplace(DType::boolean,
                     std::vector<std::int64_t>{shape.batch(), shape.q_heads(),
                                               shape.longest_query(), shape.longest_keys()});
        mask->fill(tests::MaskPattern(random, shape.longest_keys()));
    }
    spoil_unseen(random);
    // No pool has these pages, and nobody looks for them.
    const std::vector<bool> used = entries_of_pages();
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i]) tables.page_table[i] = random.chance(0.5) ? -1 : 1 << 30;
    }
}

// Keys that no query sees are NaN or infinite.
void Requests::spoil_unseen(tests::Random& random) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        const RequestLengths& lengths = shape.requests[sized(request)];
        for (std::int64_t i = 0; i < lengths.kv_len * shape.kv_heads; ++i) {
            const std::int64_t key = i / shape.kv_heads;
            const std::int64_t head = i % shape.kv_heads;
            bool seen = false;
            for (std::int64_t row = 0; row < lengths.q_len * shape.group && !seen; ++row) {
                seen =
                    sees(request, head * shape.group + row % shape.group, row / shape.group, key);
            }
            if (seen) continue;
            const std::int64_t new_row = key - (lengths.kv_len - shape.new_len);
            const KeyPlace at = place(request, key);
            for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                const double spoilt = random.chance(0.5) ? infinity : std::nan("");
                k.put({at.outer, at.inner, head, d}, spoilt);
                v.put({at.outer, at.inner, head, d}, spoilt);
                if (new_row < 0 || shape.new_len == 0) continue;
                // The copy of a NaN need not have its bits.
                new_k.put({request, new_row, head, d}, infinity);
                new_v.put({request, new_row, head, d}, infinity);
            }
        }
    }
}

bool Requests::sees(std::int64_t request, std::int64_t head, std::int64_t query,
                    std::int64_t key) const {
    const RequestLengths& lengths = shape.requests[sized(request)];
    const std::int64_t place = query + lengths.kv_len - lengths.q_len;
    if (key < 0 || key >= lengths.kv_len) return false;
    if (shape.causal && key > place) return false;
    if (shape.window_left >= 0 && key < place - shape.window_left) return false;
    if (shape.window_right >= 0 && key > place + shape.window_right) return false;
    return !mask || mask->at({request, head, query, key}) != 0.0;
}

// What was in the last places of the cache is what came with the call.
void Requests::append() {
    for (std::int64_t request = 0; request < shape.batch(); ++request) {
        for (std::int64_t row = 0; row < shape.new_len; ++row) {
            const std::int64_t key = shape.requests[sized(request)].kv_len - shape.new_len + row;
            if (key < 0) continue;
            const KeyPlace at = place(request, key);
            for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
                for (std::int64_t d = 0; d < shape.head_dim; ++d) {
                    k.put({at.outer, at.inner, head, d}, new_k.at({request, row, head, d}));
                    v.put({at.outer, at.inner, head, d}, new_v.at({request, row, head, d}));
                }
            }
        }
    }
}

}  // namespace jitney::emulator
