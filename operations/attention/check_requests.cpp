#include "operations/attention/check_requests.hpp"

#include <algorithm>
#include <limits>

#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

void check_table_stride(const Named& named) {
    const std::int64_t stride = named.tensor.strides[0];
    if (named.tensor.shape[0] <= 1 || is_empty(named.tensor)) return;
    if (stride >= -kMost && stride <= kMost) return;
    refuse("{} has rows {} elements apart, more than {}: copy it into a denser layout", named.name,
           stride, kMost);
}

void check_lengths(const AttentionArgs& args, const char* what) {
    if (args.kv_lens.has_value() != args.kv_indptr.has_value()) return;
    refuse("{} comes with the lengths of the requests, in kv_lens or in kv_indptr, and here are {}",
           what, args.kv_lens ? "both" : "neither");
}

}  // namespace

const char* key_dims(const AttentionArgs& args, KvForm form) {
    if (form == KvForm::dense) return "[batch, kv_len, kv_heads, head_dim]";
    if (form == KvForm::ragged) return "[total_kv, kv_heads, head_dim]";
    return args.k.ndim == 3 ? "[slots, kv_heads, head_dim]"
                            : "[pages, page_size, kv_heads, head_dim]";
}

int key_ndim(const AttentionArgs& args, KvForm form) {
    if (form == KvForm::dense) return 4;
    return form == KvForm::ragged || args.k.ndim == 3 ? 3 : 4;
}

void check_keys(const AttentionArgs& args, KvForm form, const Named& k, const Named& v,
                std::int64_t batch) {
    const auto& keys = args.k.shape;
    const std::int64_t head_dim = from_end(args.q, 1);
    for (const Named* tensor : {&k, &v}) {
        if (args.k.ndim == 3) {
            check_shape(*tensor, {keys[0], keys[1], head_dim});
        } else {
            check_shape(*tensor,
                        {form == KvForm::dense ? batch : keys[0], keys[1], keys[2], head_dim});
        }
    }
}

std::int64_t batch_of(const Named& indptr) {
    check_sizes(indptr, 1);
    if (indptr.tensor.shape[0] == 0) {
        refuse("{} is empty; it must have batch + 1 numbers, at least one", indptr.name);
    }
    return indptr.tensor.shape[0] - 1;
}

void check_index(const Named& first, const Named& named, int ndim, std::int64_t size, Data data) {
    check_dtype(named, DType::int32);
    check_same_device(first, named);
    check_sizes(named, ndim);
    if (size >= 0 && named.tensor.shape[0] != size) {
        refuse("{} has {} rows; it must have {}: {}", named.name, named.tensor.shape[0], size,
               named.dims);
    }
    check_strides(named);
    check_pointer(named, data);
}

std::size_t first_wrong_end(std::span<const int> ends, std::int64_t rows) noexcept {
    int low = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] < low || ends[i] > rows) return i;
        low = ends[i];
    }
    return ends.size();
}

void check_host_indptr(const AttentionArgs& args, std::int64_t batch, Data data) {
    const std::span<const int> ends = args.qo_indptr_host;
    if (ends.empty()) return;
    if (std::ssize(ends) != batch + 1) {
        refuse("qo_indptr_host has {} numbers and qo_indptr {}; they must be the same numbers",
               ends.size(), batch + 1);
    }
    if (const std::size_t i = first_wrong_end(ends, args.q.shape[0]); i < ends.size()) {
        refuse("qo_indptr_host[{}] is {}; it must lie between {} and total_q, which is {}", i,
               ends[i], i == 0 ? 0 : ends[i - 1], args.q.shape[0]);
    }
    if (data != Data::present || args.q.device.type != DeviceType::cpu) return;
    const std::span<const int> own(static_cast<const int*>(args.qo_indptr->data), ends.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] == own[i]) continue;
        refuse(
            "qo_indptr_host[{}] is {} and qo_indptr[{}] is {}; they must be the same numbers, so "
            "copy one from the other, or leave qo_indptr_host out",
            i, ends[i], i, own[i]);
    }
}

void check_forms(const AttentionArgs& args, KvForm form) {
    const int forms =
        (args.req_to_token ? 1 : 0) + (args.block_table ? 1 : 0) + (args.kv_page_indices ? 1 : 0);
    if (forms > 1) {
        refuse(
            "{}{}{} were given; pages are named in one form: leave all but one of req_to_token, "
            "block_table and kv_page_indices out",
            args.req_to_token ? "req_to_token" : "block_table",
            args.req_to_token && args.block_table ? " and block_table" : "",
            args.kv_page_indices ? " and kv_page_indices" : "");
    }
    if (args.req_to_token.has_value() != args.req_pool_indices.has_value()) {
        refuse("req_to_token and req_pool_indices come together: give {} too, or leave both out",
               args.req_to_token ? "req_pool_indices" : "req_to_token");
    }
    const bool list = form == KvForm::page_list;
    if (args.kv_page_indptr.has_value() != list || args.last_page_len.has_value() != list) {
        refuse(
            "kv_page_indptr, kv_page_indices and last_page_len come together: give all three, or "
            "leave them out");
    }
    if (list && (args.kv_lens || args.kv_indptr)) {
        refuse("last_page_len tells the lengths of the requests already: leave {} out",
               args.kv_lens ? "kv_lens" : "kv_indptr");
    }
    if (form == KvForm::token_table) check_lengths(args, "req_to_token");
    if (form == KvForm::block_table) check_lengths(args, "block_table");
    if (form == KvForm::ragged && args.kv_lens) {
        refuse(
            "kv_lens and kv_indptr both tell the lengths of the requests: leave one of them out");
    }
    if (!args.qo_indptr_host.empty() && !args.qo_indptr) {
        refuse("qo_indptr_host comes with qo_indptr, which the kernels read: give it too");
    }
    if (args.max_kv_len && *args.max_kv_len < 0) {
        refuse("max_kv_len is {}; it must be 0 or more", *args.max_kv_len);
    }
}

void check_indices(const Named& first, const AttentionArgs& args, KvForm form, std::int64_t batch,
                   Data data) {
    const auto check = [&](const std::optional<Tensor>& tensor, const char* name, const char* dims,
                           int ndim, std::int64_t size) {
        if (tensor) check_index(first, {name, *tensor, dims}, ndim, size, data);
    };
    check(args.kv_lens, "kv_lens", "[batch]", 1, batch);
    check(args.kv_indptr, "kv_indptr", "[batch + 1]", 1, batch + 1);
    check(args.req_to_token, "req_to_token", "[requests, max_len]", 2, -1);
    check(args.req_pool_indices, "req_pool_indices", "[batch]", 1, batch);
    check(args.block_table, "block_table", "[batch, max_pages]", 2, batch);
    check(args.kv_page_indptr, "kv_page_indptr", "[batch + 1]", 1, batch + 1);
    check(args.kv_page_indices, "kv_page_indices", "[pages of all requests]", 1, -1);
    check(args.last_page_len, "last_page_len", "[batch]", 1, batch);
    if (args.req_to_token) check_table_stride({"req_to_token", *args.req_to_token, ""});
    if (args.block_table) check_table_stride({"block_table", *args.block_table, ""});
    if (!is_paged(form)) return;
    const std::int64_t page_size = page_size_of(args);
    if (page_size == 0) {
        refuse("k has a page size of 0, its second size: a page must hold at least one key");
    }
    if (form == KvForm::token_table && page_size != 1) {
        refuse(
            "k has pages of {} keys, and req_to_token names single slots: give the pools as "
            "[slots, kv_heads, head_dim], or name pages by block_table",
            page_size);
    }
}

std::int64_t most_keys(const AttentionArgs& args, KvForm form) noexcept {
    if (args.max_kv_len) return *args.max_kv_len;
    switch (form) {
        case KvForm::token_table:
            return args.req_to_token->shape[1];
        case KvForm::block_table:
            return args.block_table->shape[1] * page_size_of(args);
        case KvForm::page_list:
            return args.kv_page_indices->shape[0] * page_size_of(args);
        case KvForm::ragged:
            return args.k.shape[0];
        default:
            return args.k.shape[1];
    }
}

std::int64_t kv_len_estimate(const AttentionArgs& args, KvForm form, std::int64_t batch) noexcept {
    // Somewhat below what the kernels can count to: an estimate alone is no reason to refuse.
    constexpr std::int64_t most = 0x7f000000;
    // Of requests of unknown lengths; where an estimate won't do, one of them may have all.
    const auto average = [batch, &args](std::int64_t total) {
        if (args.batch_invariant) return total;
        return batch == 0 ? 0 : (total + batch - 1) / batch;
    };
    if (form == KvForm::dense) {
        const std::int64_t all = args.k.shape[1];
        return args.kv_lens && args.max_kv_len ? std::min(all, *args.max_kv_len) : all;
    }
    if (form == KvForm::ragged && args.max_kv_len) {
        return std::min({args.k.shape[0], *args.max_kv_len, most});
    }
    if (args.max_kv_len) return std::min(*args.max_kv_len, most);
    switch (form) {
        case KvForm::token_table:
            return std::min(args.req_to_token->shape[1], most);
        case KvForm::block_table:
            return std::min(args.block_table->shape[1] * page_size_of(args), most);
        case KvForm::page_list:
            return std::min(average(args.kv_page_indices->shape[0] * page_size_of(args)), most);
        default:
            return std::min(average(args.k.shape[0]), most);
    }
}

}  // namespace jitney::checks
