// The checks of the tensors that say where the requests of an attention call stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "operations/attention/form.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

// That they are those of one form, and complete.
void check_forms(const AttentionArgs& args, KvForm form);

// The shape of k and of v in that form.
const char* key_dims(const AttentionArgs& args, KvForm form);
int key_ndim(const AttentionArgs& args, KvForm form);
// k's batch, where it has one, its head_dim, which is q's, and that v is like it.
void check_keys(const AttentionArgs& args, KvForm form, const Named& k, const Named& v,
                std::int64_t batch);

// How many requests an indptr tensor tells of.
std::int64_t batch_of(const Named& indptr);
// An int32 tensor that lies where `first` does; its first size is `size`, -1: any.
void check_index(const Named& first, const Named& named, int ndim, std::int64_t size, Data data);
// Types, shapes and memory of those that say where keys stand, against k, which is checked already.
void check_indices(const Named& first, const AttentionArgs& args, KvForm form, std::int64_t batch,
                   Data data);
void check_host_indptr(const AttentionArgs& args, std::int64_t batch, Data data);
// Of numbers that rise from 0 to `rows` at most, the first that does not; ends.size() where all do.
std::size_t first_wrong_end(std::span<const int> ends, std::int64_t rows) noexcept;

// The size of a dimension counted from the last, which is 1.
inline std::int64_t from_end(const Tensor& tensor, int dim) noexcept {
    return tensor.shape[static_cast<std::size_t>(tensor.ndim - dim)];
}

// No request has more keys than this, or than max_kv_len says.
std::int64_t most_keys(const AttentionArgs& args, KvForm form) noexcept;

// What the policy takes for the length of the longest request.
std::int64_t kv_len_estimate(const AttentionArgs& args, KvForm form, std::int64_t batch) noexcept;

}  // namespace jitney::checks
