// Attention problems as a server has them: requests of several lengths, keys in caches and pages,
// windows, caps, slopes, sinks, and new keys that come with the call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jitney/tensor.hpp"
#include "tests/support/host_tensor.hpp"
#include "tests/support/views.hpp"

namespace jitney::tests {

enum class KeyForm {
    dense,        // every request has all keys
    padded,       // [batch, longest + some], with kv_lens
    ragged,       // with kv_indptr
    token_table,  // slots
    block_table,
    page_list,
};

inline bool is_paged(KeyForm form) {
    return form >= KeyForm::token_table;
}

struct ServingShape {
    DType dtype = DType::bf16;
    std::int64_t head_dim = 64;
    std::int64_t kv_heads = 1;
    std::int64_t group = 1;
    std::vector<std::int64_t> q_lens;  // all alike unless packed
    std::vector<std::int64_t> kv_lens;
    bool packed = false;
    std::int64_t idle_rows = 0;  // packed: rows of q behind those of the last request
    KeyForm keys = KeyForm::dense;
    std::int64_t page_size = 1;
    bool heads_outside = false;      // pools lie [pages, kv_heads, page_size, head_dim]
    bool lengths_as_indptr = false;  // of tables
    // Keys of a request that caches, pools and tables have room for, so that problems of other
    // lengths have the same shapes; 0: as many as are needed, and a few more.
    std::int64_t room = 0;
    std::int64_t new_len = 0;
    int mask_dims = 0;  // 2: a row a request, 3: a query, 4: a query and head
    bool causal = false;
    int window_left = -1;
    int window_right = -1;
    std::optional<double> softcap;
    std::optional<double> scale;
    bool alibi = false;
    bool sinks = false;

    std::int64_t batch() const { return static_cast<std::int64_t>(q_lens.size()); }
    std::int64_t heads() const { return kv_heads * group; }
    std::int64_t q_len(std::int64_t request) const {
        return q_lens[static_cast<std::size_t>(request)];
    }
    std::int64_t kv_len(std::int64_t request) const {
        return kv_lens[static_cast<std::size_t>(request)];
    }
    std::string text() const;
};

// The tensors of a call by the names of its fields. out and lse are poisoned; so is what no request
// has: the rest of pools, pages and padded caches, and the ends of tables. Keys that no query sees
// are NaN or infinite, and tables name no pages before the first key that one may see.
class ServingProblem {
  public:
    ServingProblem(const ServingShape& shape, Random& random);

    ServingShape shape;
    std::map<std::string, HostTensor> tensors;

    Views views(const Device& device = kHost) { return views_of(tensors, device); }
    HostTensor& at(const std::string& name) { return tensors.at(name); }
    const HostTensor& at(const std::string& name) const { return tensors.at(name); }

    // The definition's view of it: element `dim` of a query, of a key, of a value.
    double query(std::int64_t request, std::int64_t i, std::int64_t head, std::int64_t dim) const;
    double key(std::int64_t request, std::int64_t j, std::int64_t kv_head, std::int64_t dim) const;
    double value(std::int64_t request, std::int64_t j, std::int64_t kv_head,
                 std::int64_t dim) const;
    bool sees(std::int64_t request, std::int64_t i, std::int64_t head, std::int64_t j) const;
    // Row-major index of the first element of a row of out, and of an LSE.
    std::int64_t out_index(std::int64_t request, std::int64_t i, std::int64_t head) const;
    std::int64_t lse_index(std::int64_t request, std::int64_t i, std::int64_t head) const;
    // And of a row of k or v.
    std::int64_t key_index(std::int64_t request, std::int64_t j, std::int64_t kv_head) const;

    // The first key of a request that a query may see, for its window, or that is appended.
    std::int64_t first_used(std::int64_t request) const;
    // Whether any query that reads this KV head sees the key.
    bool is_seen(std::int64_t request, std::int64_t kv_head, std::int64_t j) const;
    // Has the tables name no pages before those of the first key of each request, and nothing of
    // the cache before these keys usable.
    void evict(std::span<const std::int64_t> first_keys, Random& random);
    // Which elements of a tensor a call may touch, in row-major order; empty: all.
    std::vector<bool> usable(const std::string& name) const;

    // Rows of `out` and `lse` that belong to no request: whether they are poison still. They become
    // zero, so that the rest can be compared.
    bool idle_rows_untouched(HostTensor& out, HostTensor& lse) const;

  private:
    void add_queries(Random& random);
    void add_keys(Random& random);
    void add_pages(Random& random);
    void add_options(Random& random);
    void spoil_unseen(Random& random);
    std::int64_t table_index(std::int64_t request, std::int64_t page) const;
    std::int64_t first_query(std::int64_t request) const;
    std::int64_t cache_rows() const;  // of a request, where there are no pages
    std::int64_t room_pages() const;
    double from_cache(const char* cache, const char* fresh, std::int64_t request, std::int64_t j,
                      std::int64_t kv_head, std::int64_t dim) const;

    std::vector<std::vector<std::int64_t>> pages_;  // of each request
    std::vector<std::int64_t> first_keys_;          // that may be touched, of each request
};

// The call, public or the reference's, with these tensors.
template <class Args>
Args serving_call(const ServingShape& shape, const Views& views) {
    Args args;
    const auto find = [&views](const char* name) { return find_view(views, name); };
    args.q = views.at("q");
    set_cache(args, views);
    args.out = views.at("out");
    args.lse = find("lse");
    args.mask = find("mask");
    args.qo_indptr = find("qo_indptr");
    args.alibi_slopes = find("alibi_slopes");
    args.sinks = find("sinks");
    args.new_k = find("new_k");
    args.new_v = find("new_v");
    args.causal = shape.causal;
    args.window_left = shape.window_left;
    args.window_right = shape.window_right;
    using Number = typename decltype(args.scale)::value_type;
    if (shape.scale) args.scale = static_cast<Number>(*shape.scale);
    if (shape.softcap) args.softcap = static_cast<Number>(*shape.softcap);
    return args;
}

// What random shapes are taken from; options that are on come up in half of them.
struct ServingLimits {
    std::int64_t batch = 4;
    std::int64_t q_len = 40;
    std::int64_t kv_len = 100;
    std::int64_t kv_heads = 2;
    std::int64_t group = 4;
    std::vector<KeyForm> keys{KeyForm::dense,       KeyForm::padded,      KeyForm::ragged,
                              KeyForm::token_table, KeyForm::block_table, KeyForm::page_list};
    std::vector<std::int64_t> page_sizes{1, 5, 8, 16};
};

// Lengths, keys and pages; options are left off.
ServingShape random_serving_shape(Random& random, const ServingLimits& limits, bool packed);
// Each option that is asked for gets a value; the window has at least one bound.
struct ServingOptions {
    bool window = false;
    bool softcap = false;
    bool alibi = false;
    bool sinks = false;
    bool mask = false;
    bool append = false;
};
void add_options(ServingShape& shape, const ServingOptions& options, Random& random);

}  // namespace jitney::tests
