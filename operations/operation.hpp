// What an operation gives to the one path that all of them travel (path.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jitney/explain.hpp"
#include "operations/own_workspace.hpp"
#include "operations/tensor_checks.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney {

// The descriptor of the operation whose arguments these are; CallFields lists them.
//
//   Problem, Choice     what its check makes of arguments, and its choice of a problem
//   Params              the parameters of each launch; of(step) is the address of one
//   name                as its call, the registry and sentences have it
//   kernels_of          the operation whose kernels run it, where that is another
//   Explained           what explain() tells, where that is no Explanation
//   otherwise           what to do where no kernel can: the end of a sentence
//   device(args)        where the tensors are
//   check(args, data)   throws where arguments can't be meant
//   has_no_rows(problem)                nothing to compute, and no geometry to ask for
//   rank(problem, facts, kernel)        the candidates, and the choice of the first accepted;
//                                       `kernel` is the only one where it is named
//   rank_until_accepted(the same)       no candidate behind the accepted one; may be missing
//   computes(problem), computes(choice) whether more is done than to write what is known of
//                                       nothing; may be missing where it always is
//   steps(choice), scratch(choice)      what is launched, and the memory beside the tensors
//   scratch_anywhere(problem, choice, facts)        that memory wherever the tensors will lie; may
//                                                   be missing where it is the same
//   tell(explained, problem, choice)    what explain says beyond the steps; may be missing
//   fill(args, problem, choice)         the parameters, addresses apart
//   set_addresses(params, args, choice, scratch)    those, at each launch
//   write_numbers(args, choice, stream)             what the driver writes ahead of the launches;
//                                                   may be missing
//   run_empty(args, problem, backend, stream)       what is written where there are no rows; may
//                                                   be missing
//   run_reference(args)
//   leave_open(args)    takes away what runs of a plan are free in, and the plan's choice is not to
//                       follow; may be missing
//
// A problem has `aligned`, or is_as_aligned(problem, other) beside it: plans serve calls that are
// as well aligned as theirs.
template <class Args>
struct OperationOf;

struct Step {
    policy::Spec spec;
    policy::Geometry geometry;
};

// The launches of a call in their order. The last is the one that the call is named by.
class Steps {
  public:
    static constexpr std::size_t most = 6;

    Steps() = default;
    Steps(std::initializer_list<Step> steps) noexcept {
        for (const Step& step : steps)
            add(step);
    }
    void add(const Step& step) noexcept { steps_[count_++] = step; }

    std::span<const Step> all() const noexcept { return {steps_.data(), count_}; }
    std::span<const Step> before() const noexcept { return {steps_.data(), count_ - 1}; }
    const Step& last() const noexcept { return steps_[count_ - 1]; }

  private:
    std::array<Step, most> steps_{};
    std::size_t count_ = 0;
};

using policy::Ranking;
using policy::ranking_of_one;

// The operation whose kernels can be named for this one.
template <class Op>
constexpr std::string_view kernels_of() noexcept {
    if constexpr (requires { Op::kernels_of; }) {
        return Op::kernels_of;
    } else {
        return Op::name;
    }
}

// What explain() tells of an operation.
template <class Op>
struct ExplainedBy {
    using Type = Explanation;
};
template <class Op>
requires requires {
    typename Op::Explained;
}
struct ExplainedBy<Op> {
    using Type = typename Op::Explained;
};

// Whether all that moves several elements at once for `other` can do so for `problem`.
template <class Problem>
bool as_aligned(const Problem& problem, const Problem& other) noexcept {
    if constexpr (requires { is_as_aligned(problem, other); }) {
        return is_as_aligned(problem, other);
    } else {
        return problem.aligned || !other.aligned;
    }
}

// The parameters of an operation of one launch.
template <class Params>
struct OneLaunch {
    Params params{};
    void* of(std::size_t) noexcept { return &params; }
};

// The caller's workspace, where the operation takes one.
template <class Args>
Workspace workspace_given(const Args& args) noexcept {
    if constexpr (requires { args.workspace; }) {
        return args.workspace;
    } else {
        return {};
    }
}

// What lists among the arguments show is kept with a prepared call: an operation that has such
// lists specializes this.
template <class Args>
struct KeptLists {
    void keep(Args&) noexcept {}
    // Of the tensors in them.
    template <class Visit>
    void for_each_tensor(const Visit&) noexcept {}
};

}  // namespace jitney
