#include "api/c_abi_values.hpp"

#include <cstring>

#include "operations/logits_access.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {

using checks::refuse;

static_assert(JITNEY_INTERLEAVED == static_cast<int>(RotaryStyle::interleaved) &&
              JITNEY_HALF_SPLIT == static_cast<int>(RotaryStyle::half_split));

void take(int& value, const char* name, Lists&, std::int32_t has_bounds, std::int32_t bound) {
    if (has_bounds != 0) {
        value = bound;
    } else if (bound != 0) {
        refuse("{} is {}, and has_window is 0: set it to 1", name, bound);
    }
}

void take(std::span<const int>& value, const char* name, Lists&, const std::int32_t* given,
          const DLTensor* tensor) {
    if (given == nullptr) return;
    if (tensor == nullptr || tensor->ndim != 1 || tensor->shape == nullptr ||
        tensor->shape[0] < 0) {
        refuse("{} was given, and the tensor of its name is none of one dimension: give both",
               name);
    }
    value = {given, static_cast<std::size_t>(tensor->shape[0])};
}

void take(std::span<const PartialState>& value, const char* name, Lists& lists,
          const jitney_partial_state* given, std::size_t count) {
    auto& parts = lists.parts.emplace();
    if (count > parts.size()) {
        refuse("part_count is {}; it is at most {}: give several partial results in one tensor",
               count, parts.size());
    }
    if (given == nullptr) refuse("{} is null: point it to part_count parts", name);
    for (std::size_t i = 0; i < count; ++i)
        parts[i] = {required(given[i].out, "a part's out"), required(given[i].lse, "a part's lse")};
    value = {parts.data(), count};
}

namespace {

const detail::LogitsRecord* record_of(const jitney_logits_function* function) {
    return reinterpret_cast<const detail::LogitsRecord*>(function);
}

LogitsValue value_of(const jitney_logits_value& given, LogitsValue::Kind kind) {
    switch (kind) {
        case LogitsValue::Kind::fp32:
            return given.fp32;
        case LogitsValue::Kind::int32:
            return given.int32;
        case LogitsValue::Kind::int64:
            return given.int64;
        default:
            return given.pointer;
    }
}

}  // namespace

void take(LogitsFunction& value, const char*, Lists&, const jitney_logits_function* given) {
    if (given != nullptr) value = LogitsAccess::of(record_of(given));
}

// The declarations say which member of each value counts; one that nothing is declared for is
// given where it is not 0, and the operation's to refuse.
void take(LogitsValues& value, const char*, Lists&, const jitney_logits_value (&given)[4],
          const jitney_logits_function* function) {
    static constexpr jitney_logits_value zero = {};
    const detail::LogitsRecord* const record = record_of(function);
    const std::size_t declared = record == nullptr ? 0 : record->parameters.size();
    for (std::size_t i = 0; i < kLogitsValues; ++i) {
        if (i < declared) {
            value[i] = value_of(given[i], record->parameters[i].kind);
        } else if (std::memcmp(&given[i], &zero, sizeof zero) != 0) {
            value[i] = given[i].pointer;
        }
    }
}

}  // namespace jitney::c_abi
