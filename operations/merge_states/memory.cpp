#include "operations/merge_states/memory.hpp"

namespace jitney::checks {
namespace {

int place_of(const Tensor& result, const MergeStatesArgs& args, Tensor PartialState::*member) {
    int number = 0;
    for (const PartialState& part : args.parts) {
        if (!is_empty(result) && (part.*member).data == result.data) return number;
        ++number;
    }
    return -1;
}

// The result is that part, or lies apart from it.
bool lies_well(const Tensor& result, const Tensor& part, bool in_place) noexcept {
    return in_place ? result.data == part.data : !meet(span_of(result), span_of(part));
}

}  // namespace

FormMemory<MergeStatesArgs>::FormMemory(const MergeStatesArgs& args) noexcept
    : out_part_(place_of(args.out, args, &PartialState::out)),
      lse_part_(args.lse ? place_of(*args.lse, args, &PartialState::lse) : kNone) {
    // One of several parts in a tensor: the others have to be told from it.
    for (const int part : {out_part_, lse_part_}) {
        if (part == kNone) continue;
        tells_ = tells_ && args.parts[static_cast<std::size_t>(part)].out.ndim == args.out.ndim;
    }
}

bool FormMemory<MergeStatesArgs>::lies_apart(const MergeStatesArgs& args) const noexcept {
    if (!tells_) return false;
    bool apart = !args.lse || !meet(span_of(args.out), span_of(*args.lse));
    int number = 0;
    for (const PartialState& part : args.parts) {
        apart = apart && lies_well(args.out, part.out, number == out_part_) &&
                lies_well(args.out, part.lse, false);
        if (args.lse) {
            apart = apart && lies_well(*args.lse, part.lse, number == lse_part_) &&
                    lies_well(*args.lse, part.out, false);
        }
        ++number;
    }
    return apart;
}

}  // namespace jitney::checks
