// The checks of the tensors that say where the requests of an attention call stand.
#pragma once

#include "api/attention_form.hpp"
#include "api/tensor_checks.hpp"

namespace jitney::checks {

// That they are those of one form, and complete.
void check_forms(const AttentionArgs& args, KvForm form);

// Their types, shapes and memory, against those of q and of k, which are checked already.
void check_indices(const AttentionArgs& args, KvForm form, std::int64_t batch, Data data);

// What the policy takes for the length of the longest request.
std::int64_t kv_len_estimate(const AttentionArgs& args, KvForm form, std::int64_t batch) noexcept;

}  // namespace jitney::checks
