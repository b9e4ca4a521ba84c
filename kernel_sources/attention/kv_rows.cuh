// Where the rows of K and V stand: a fixed distance apart, or on pages that a table names.
#pragma once

#include "attention/rows.cuh"
#include "attention/seen_keys.cuh"
#include "common/warp.cuh"

namespace jitney {

// One KV head of K or of V of one request, in bytes.
struct KvHead {
    const char* first;     // dense: key 0; paged: slot 0 of page 0
    long long row_bytes;   // from key to key, or from slot to slot
    long long page_bytes;  // from page to page
};

template <class C>
JITNEY_DEVICE KvHead kv_head_of(const void* tensor, const AttentionStrides& strides,
                                const Request& request, int kv_head, int element_bytes) {
    const int batch = C::kv == kPagedKv ? 0 : request.batch;
    return {static_cast<const char*>(tensor) +
                offset_of(strides, batch, request.first_key, kv_head) * element_bytes,
            strides.row * element_bytes, strides.batch * element_bytes};
}

// Key number `key` of a request stands in slot key % page_size of its page key / page_size.
JITNEY_DEVICE int page_of(const AttentionParams& params, int key) {
    const unsigned number = static_cast<unsigned>(key);
    const unsigned page = params.page_magic == 0 ? number : __umulhi(number, params.page_magic);
    return static_cast<int>(page >> params.page_shift);
}

JITNEY_DEVICE const char* paged_row(const AttentionParams& params, const KvHead& head, int key,
                                    int page) {
    const int slot = key - page_of(params, key) * params.page_size;
    return head.first + page * head.page_bytes + slot * head.row_bytes;
}

// The row of one key, its page read from the table.
template <class C>
JITNEY_DEVICE const char* kv_row(const AttentionParams& params, const Request& request,
                                 const KvHead& head, int key) {
    if constexpr (C::kv == kPagedKv) {
        return paged_row(params, head, key, request.pages[page_of(params, key)]);
    } else {
        return head.first + key * head.row_bytes;
    }
}

// Which rows of a tile are read, as a cursor walks over them from the tile's first row on; the
// others become zero.

struct RowsBefore {
    int left;

    JITNEY_DEVICE void advance(int rows) { left -= rows; }
    JITNEY_DEVICE bool valid() const { return left > 0; }
};

struct RowsWithin {
    int before;  // rows that are not read before the first that is
    int left;

    JITNEY_DEVICE void advance(int rows) {
        before -= rows;
        left -= rows;
    }
    JITNEY_DEVICE bool valid() const { return before <= 0 && left > 0; }
};

// Those of the keys that are seen.
template <int keys>
struct RowsSeen {
    SeenKeys<keys> seen;
    int row = 0;

    JITNEY_DEVICE void advance(int rows) { row += rows; }
    JITNEY_DEVICE bool valid() const { return seen.has(row); }
};

// Cursors of load_tile over the keys from `key` on.

template <class Rows>
struct DenseCursor {
    const char* row;
    long long row_bytes;
    Rows rows;

    JITNEY_DEVICE DenseCursor(const KvHead& head, int key, const Rows& read)
        : row(head.first + key * head.row_bytes), row_bytes(head.row_bytes), rows(read) {}

    JITNEY_DEVICE void start(int first) { advance(first); }
    JITNEY_DEVICE void advance(int rows_on) {
        row += rows_on * row_bytes;
        rows.advance(rows_on);
    }
    JITNEY_DEVICE const char* address() const { return row; }
    JITNEY_DEVICE bool valid() const { return rows.valid(); }
};

// Page(row) gives the page of a row of the tile.
template <class Page, class Rows>
struct PagedCursor {
    const AttentionParams& params;
    const KvHead& head;
    Page page;
    int first_key;
    Rows rows;
    int row = 0;

    JITNEY_DEVICE void start(int first) { advance(first); }
    JITNEY_DEVICE void advance(int rows_on) {
        row += rows_on;
        rows.advance(rows_on);
    }
    JITNEY_DEVICE const char* address() const {
        return paged_row(params, head, first_key + row, page(row));
    }
    JITNEY_DEVICE bool valid() const { return rows.valid(); }
};

// The same where one warp loads the tile: each lane works out where one row stands, and tells
// those that copy it. Rows past the 32nd are none.
struct LaneRowsCursor {
    const char* mine;  // row number `lane` of the tile
    int rows;          // that may be read
    int row = 0;

    JITNEY_DEVICE void start(int first) { row = first; }
    JITNEY_DEVICE void advance(int rows_on) { row += rows_on; }
    JITNEY_DEVICE const char* address() const { return address_of_lane(mine, row % kWarpSize); }
    JITNEY_DEVICE bool valid() const { return row < rows; }
};

// The keys from first_new on come from the new rows instead of the cache.
template <class Cached>
struct AppendCursor {
    Cached cached;
    const char* new_row;  // of key first_new
    long long new_row_bytes;
    int first_new;
    int key;

    JITNEY_DEVICE void start(int first) {
        cached.start(first);
        key += first;
    }
    JITNEY_DEVICE void advance(int rows) {
        cached.advance(rows);
        key += rows;
    }
    JITNEY_DEVICE const char* address() const {
        const char* old = cached.address();
        return key < first_new ? old : new_row + (key - first_new) * new_row_bytes;
    }
    JITNEY_DEVICE bool valid() const { return cached.valid(); }
};

}  // namespace jitney
