// Where the tensors of a merge lie: results take the place of one part, both, or lie apart from
// all.
#pragma once

#include "jitney/merge_states.hpp"
#include "operations/call_memory.hpp"

namespace jitney::checks {

// For calls of one form. What it can't tell at a glance goes through the check of the call again.
template <>
class FormMemory<MergeStatesArgs> {
  public:
    FormMemory() = default;
    explicit FormMemory(const MergeStatesArgs& args) noexcept;

    bool lies_apart(const MergeStatesArgs& args) const noexcept;

  private:
    // The part whose place a result takes.
    static constexpr int kNone = -1;
    int out_part_ = kNone;
    int lse_part_ = kNone;
    bool tells_ = true;
};

}  // namespace jitney::checks
