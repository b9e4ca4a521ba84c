#include "operations/call_form.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "operations/append_kv/fields.hpp"
#include "operations/attention/check_requests.hpp"
#include "operations/attention/fields.hpp"
#include "operations/merge_states/fields.hpp"
#include "operations/rotary/fields.hpp"

namespace jitney {
namespace {

// In place where the prepared call was.
template <class Args, class Field>
bool same_place(const Field& field, const Args& args, const Args& prepared) noexcept {
    if constexpr (Field::is_tensor) {
        if (field.source == nullptr) return true;
        const Tensor* const out = tensor_in(args.*field.member);
        const Tensor* const in = tensor_in(args.*field.source);
        if (out == nullptr || in == nullptr) return true;
        return (in->data == out->data) ==
               (tensor_in(prepared.*field.source)->data == tensor_in(prepared.*field.member)->data);
    } else {
        return true;
    }
}

// `freedom`: what calls may differ in at least, so that what they have in common counts for them.
template <Differs freedom, class Args>
bool same_fields(const Args& args, const Args& prepared) noexcept {
    return all_fields<Args>([&](const auto& field) {
        if constexpr (std::decay_t<decltype(field)>::differs >= freedom) {
            return field.sound(args, prepared);
        } else {
            return same_in(field, args, prepared) && same_place(field, args, prepared);
        }
    });
}

}  // namespace

bool same_form(const AttentionArgs& args, const AttentionArgs& prepared) noexcept {
    return same_fields<Differs::in_calls>(args, prepared);
}

bool same_form(const RotaryArgs& args, const RotaryArgs& prepared) noexcept {
    return same_fields<Differs::in_calls>(args, prepared);
}

bool same_form(const AppendKvArgs& args, const AppendKvArgs& prepared) noexcept {
    return same_fields<Differs::in_calls>(args, prepared);
}

bool same_form(const MergeStatesArgs& args, const MergeStatesArgs& prepared) noexcept {
    return same_fields<Differs::in_calls>(args, prepared);
}

bool is_run_of(const AttentionArgs& args, const AttentionArgs& planned) noexcept {
    return same_fields<Differs::in_runs>(args, planned);
}

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
