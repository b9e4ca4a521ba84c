// One request of a batch: where its queries and keys stand, and how many there are. Lengths are
// read here, on the device, so that a captured launch follows them.
#pragma once

#include "attention/params.h"
#include "common/builtins.cuh"
#include "common/constants.h"

namespace jitney {

struct Request {
    int batch;
    int first_query;  // among the packed queries
    int q_len;
    int first_key;  // among the packed keys
    int kv_len;
    const int* pages;  // page numbers

    // Keys and queries end together: query i stands where key i + this stands.
    JITNEY_DEVICE int query_offset() const { return kv_len - q_len; }
};

// `kv` is a KvSource, `queries` a QuerySchedule.
template <int kv, int queries>
JITNEY_DEVICE Request request_of(const AttentionParams& params, int batch) {
    Request request = {batch, 0, params.q_len, 0, params.kv_len, nullptr};
    if constexpr (queries == kPackedQueries) {
        request.first_query = params.qo_indptr[batch];
        request.q_len = params.qo_indptr[batch + 1] - request.first_query;
    }
    int first_page = 0;
    int pages = 0;
    if constexpr (kv == kPagedKv) {
        if (params.page_tables == kTableIndptr) {
            first_page = params.kv_page_indptr[batch];
            pages = params.kv_page_indptr[batch + 1] - first_page;
            request.pages = params.page_table + first_page;
        } else {
            const long long row =
                params.request_rows == nullptr ? batch : params.request_rows[batch];
            request.pages = params.page_table + row * params.table_stride;
        }
    }
    switch (params.kv_lengths) {
        case kKvLenIndptr:
            request.first_key = kv == kPagedKv ? 0 : params.kv_indptr[batch];
            request.kv_len = params.kv_indptr[batch + 1] - params.kv_indptr[batch];
            break;
        case kKvLenArray:
            request.kv_len = params.kv_lens[batch];
            break;
        case kKvLenPages:
            request.kv_len =
                pages == 0 ? 0 : (pages - 1) * params.page_size + params.last_page_len[batch];
            break;
        default:
            break;
    }
    return request;
}

}  // namespace jitney
