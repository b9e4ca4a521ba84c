// A batch of attention requests, each of its own lengths, with every layout and option that the
// kernels know, and what the reference makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/host_tensor.hpp"

namespace jitney::emulator {

struct RequestLengths {
    std::int64_t q_len;
    std::int64_t kv_len;
};

enum class KvForm {
    fixed,        // [batch, kv_len, ...]: all requests alike
    padded,       // [batch, longest, ...] and an array of lengths
    packed,       // [total, ...] and an indptr
    token_table,  // pages of one slot: a row of page numbers a request, found by request_rows
    block_table,  // a row of page numbers a request, and an array of lengths
    page_lists,   // one list of page numbers with an indptr, and the fill of each last page
};

inline bool is_paged(KvForm form) {
    return form >= KvForm::token_table;
}

struct RequestsShape {
    std::vector<RequestLengths> requests;
    std::int64_t kv_heads = 1;
    std::int64_t group = 1;
    std::int64_t head_dim = 64;
    DType dtype = DType::bf16;
    bool packed = false;  // the queries; otherwise all requests have the same q_len
    KvForm kv = KvForm::fixed;
    std::int64_t page_size = 1;
    std::int64_t new_len = 0;  // keys of each request that come with the call; 0: no append

    bool causal = false;
    bool mask = false;
    std::int64_t window_left = -1;
    std::int64_t window_right = -1;
    double softcap = 0.0;  // 0: none
    bool alibi = false;
    bool sinks = false;
    std::vector<int> pool_order;  // of the dimensions of k and v in memory; empty: as they are
    bool far = false;  // every tensor's rows lie far apart, as EmulatedTensor::Spread says

    std::int64_t batch() const { return static_cast<std::int64_t>(requests.size()); }
    std::int64_t q_heads() const { return kv_heads * group; }
    double scale() const;
    std::int64_t total_queries() const;
    std::int64_t longest_query() const;
    std::int64_t longest_keys() const;
    std::string text() const;
};

// int32 values as the kernels read them; empty where the form has none.
struct RequestTables {
    std::vector<int> qo_indptr;
    std::vector<int> kv_indptr;
    std::vector<int> kv_lens;
    std::vector<int> page_table;
    int table_stride = 0;
    std::vector<int> request_rows;
    std::vector<int> kv_page_indptr;
    std::vector<int> last_page_len;
};

// Where key `key` of a request lies: the first two indices into k and v.
struct KeyPlace {
    std::int64_t outer;  // the batch entry, or the page
    std::int64_t inner;  // the row, or the slot
};

class Requests {
  public:
    Requests(const RequestsShape& shape, tests::Random& random);

    KeyPlace place(std::int64_t request, std::int64_t key) const;
    // The first key of a request that a query may see, for its window, or that is appended: what is
    // before is not touched.
    std::int64_t first_used(std::int64_t request) const;
    // Of the row-major elements of k and v: whether they belong to a key of a request from that one
    // on, the newest `leave_out` of which do not count.
    std::vector<bool> elements_of_keys(std::int64_t leave_out) const;
    // Of the entries of the page table: whether they name a page of such a key.
    std::vector<bool> entries_of_pages() const;
    // Of the row-major elements of the mask: whether they belong to a query and a key.
    std::vector<bool> elements_of_mask() const;
    // Fills out and lse, and k and v where new rows are appended.
    void run_reference();
    // Whether query `query` of a request sees the key.
    bool sees(std::int64_t request, std::int64_t head, std::int64_t query, std::int64_t key) const;

    RequestsShape shape;
    RequestTables tables;
    tests::HostTensor q;  // [batch, q_len, heads, head_dim]; packed: [1, total, heads, head_dim]
    tests::HostTensor k;  // [batch or 1 or pages, length or slots, kv_heads, head_dim]
    tests::HostTensor v;
    tests::HostTensor out;                  // as q
    tests::HostTensor lse;                  // [batch, heads, q_len]; packed: [1, total, heads]
    std::optional<tests::HostTensor> mask;  // [batch, heads, longest q_len, longest kv_len]
    tests::HostTensor slopes;               // [heads]
    tests::HostTensor sinks;                // [heads]
    tests::HostTensor new_k;                // [batch, new_len, kv_heads, head_dim]
    tests::HostTensor new_v;

  private:
    void make_tables(tests::Random& random);
    void make_page_tables(tests::Random& random);
    void fill(tests::Random& random);
    void spoil_unseen(tests::Random& random);
    std::size_t table_entry(std::int64_t request, std::int64_t page) const;
    void append();

    std::vector<std::vector<int>> pages_;  // of each request
};

}  // namespace jitney::emulator
