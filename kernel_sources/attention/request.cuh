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

JITNEY_DEVICE int q_len_of(const AttentionParams& params, int batch) {
    if (params.qo_indptr == nullptr) return params.q_len;
    return params.qo_indptr[batch + 1] - params.qo_indptr[batch];
}

JITNEY_DEVICE int kv_len_of(const AttentionParams& params, int batch) {
    switch (params.kv_lengths) {
        case kKvLenIndptr:
            return params.kv_indptr[batch + 1] - params.kv_indptr[batch];
        case kKvLenArray:
            return params.kv_lens[batch];
        case kKvLenPages: {
            const int pages = params.kv_page_indptr[batch + 1] - params.kv_page_indptr[batch];
            return pages == 0 ? 0 : (pages - 1) * params.page_size + params.last_page_len[batch];
        }
        default:
            return params.kv_len;
    }
}

// `kv` is a KvSource, `queries` a QuerySchedule.
template <int kv, int queries>
JITNEY_DEVICE Request request_of(const AttentionParams& params, int batch) {
    Request request = {batch, 0, params.q_len, 0, kv_len_of(params, batch), nullptr};
    if constexpr (queries == kPackedQueries) {
        request.first_query = params.qo_indptr[batch];
        request.q_len = params.qo_indptr[batch + 1] - request.first_query;
    }
    if constexpr (kv == kPagedKv) {
        if (params.page_tables == kTableIndptr) {
            request.pages = params.page_table + params.kv_page_indptr[batch];
        } else {
            const long long row =
                params.request_rows == nullptr ? batch : params.request_rows[batch];
            request.pages = params.page_table + row * params.table_stride;
        }
    } else {
        if (params.kv_lengths == kKvLenIndptr) request.first_key = params.kv_indptr[batch];
    }
    return request;
}

}  // namespace jitney
