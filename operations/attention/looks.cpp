#include <algorithm>
#include <limits>

#include "operations/attention/check_requests.hpp"
#include "operations/attention/fields.hpp"
#include "operations/call_form.hpp"

namespace jitney {
namespace look {

// Of the host, the check compares them with those of the tensor.
bool at_host_indptr(const AttentionArgs& args, const AttentionArgs&) noexcept {
    const std::span<const int> ends = args.qo_indptr_host;
    if (ends.empty()) return true;
    return args.qo_indptr && args.q.device.type != DeviceType::cpu &&
           std::ssize(ends) == args.qo_indptr->shape[0] &&
           checks::first_wrong_end(ends, args.q.shape[0]) == ends.size();
}

// As long as it was, or of another length that a list can have.
bool at_page_list(const AttentionArgs& args, const AttentionArgs& prepared) noexcept {
    const std::optional<Tensor>& list = args.kv_page_indices;
    const std::optional<Tensor>& other = prepared.kv_page_indices;
    if (!list || !other) return list.has_value() == other.has_value();
    const std::int64_t pages = list->shape[0];
    if (pages == other->shape[0]) return same_form(*list, *other);
    Tensor sized = *list;
    sized.shape[0] = other->shape[0];
    return same_form(sized, *other) && pages > 0 &&
           pages <= std::numeric_limits<std::int32_t>::max() && list->strides[0] == 1;
}

bool at_max_kv_len(const AttentionArgs& args, const AttentionArgs&) noexcept {
    return !args.max_kv_len || *args.max_kv_len >= 0;
}

// What they are is put in by each launch; of which kinds they are was checked.
bool at_logits_values(const AttentionArgs& args, const AttentionArgs& prepared) noexcept {
    return std::ranges::equal(args.logits_values, prepared.logits_values, {}, &LogitsValue::kind,
                              &LogitsValue::kind);
}

}  // namespace look
}  // namespace jitney
