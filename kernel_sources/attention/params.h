// What every attention kernel is launched with; shared by host and device. What an option or a
// layout does not use is not read.
#pragma once

namespace jitney {

// Element distances within [batch, length, heads, head_dim] (or a part of it). Packed tensors have
// the batch stride 0; in a page pool `batch` is the distance between pages.
struct AttentionStrides {
    long long batch;
    long long row;
    long long head;
};

// How many keys each request has.
enum KvLengths : int {
    kKvLenFixed = 0,   // kv_len
    kKvLenIndptr = 1,  // kv_indptr[b + 1] - kv_indptr[b]
    kKvLenArray = 2,   // kv_lens[b]
    kKvLenPages = 3,   // whole pages and the last one's fill
};

// Where the page numbers of each request stand.
enum PageTable : int {
    kTableRows = 0,    // page_table + request_rows[b] * table_stride; b itself without request_rows
    kTableIndptr = 1,  // page_table + kv_page_indptr[b]
};

struct AttentionParams {
    const void* q;
    const void* k;  // paged: the pools, [pages, page_size, kv_heads, head_dim] by strides
    const void* v;
    void* out;
    float* lse;                 // null: not wanted
    const unsigned char* mask;  // non-zero = keep; rows are queries, one byte a key

    AttentionStrides q_strides;
    AttentionStrides k_strides;
    AttentionStrides v_strides;
    AttentionStrides out_strides;
    AttentionStrides lse_strides;
    AttentionStrides mask_strides;  // 0 where the mask has no such dimension

    int batch;
    int q_len;   // of every request; packed: not read
    int kv_len;  // kKvLenFixed
    int kv_heads;
    int group;         // query heads of one KV head
    int row_tiles;     // tiles of q_len * group packed rows a KV head; packed: of all requests
    float scale_log2;  // softmax scale * log2(e), positive

    // Packed queries.
    const int* qo_indptr;   // [batch + 1]: first query of each request
    const int* tile_batch;  // [row_tiles]: request of each tile, or -1
    const int* tile_index;  // [row_tiles]: its number within the request

    // Lengths and pages.
    int kv_lengths;   // a KvLengths
    int page_tables;  // a PageTable
    int page_size;
    unsigned page_magic;  // key / page_size is the high half of key * page_magic >> page_shift,
                          // or key >> page_shift where page_magic is 0
    int page_shift;
    int table_stride;
    const int* kv_indptr;  // also the first key of each request, where K and V are packed
    const int* kv_lens;
    const int* page_table;
    const int* request_rows;
    const int* kv_page_indptr;
    const int* last_page_len;

    // Options.
    int window_left;            // keys before the query's own that it sees; -1: all
    int window_right;           // and behind; -1: all
    float softcap_scale;        // score scale / cap: capped = cap * tanh(score * softcap_scale)
    const float* alibi_slopes;  // [q_heads]
    const float* sinks;         // [q_heads]: logits that join the denominator only

    // Append: the last new_len keys of each request come from here, and are written to the pool.
    const void* new_k;
    const void* new_v;
    AttentionStrides new_k_strides;
    AttentionStrides new_v_strides;
    int new_len;

    // Split-KV. With one part a block writes the output itself; with more, partial results go to
    // the workspace and the last block of a tile to finish merges them.
    int splits;          // blocks a tile
    int split_keys;      // 0: the keys of a tile are divided among all its blocks. Otherwise into
    int split_parts;     // parts of at least so many keys, and at most so many parts: however many
                         // blocks there are, and whatever other requests have
    float* partial_out;  // [tile, split, row, head_dim], not normalised
    void* partial_statistics;  // [tile, split, row]: maximum in units of log2, and sum
    unsigned int* arrived;     // [tile], zero before the first launch and again after each

    // A logits function of the caller's: what its scores are multiplied by first, and the bits of
    // its parameters. The other scales are then those of scores in natural units.
    float caller_scale;
    unsigned long long caller_values[4];
};

}  // namespace jitney
