// What an operation gives to the one path that all of them travel (path.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "operations/own_workspace.hpp"
#include "policy/candidates.hpp"
#include "policy/device_facts.hpp"
#include "policy/spec.hpp"

namespace jitney {

// The descriptor of the operation whose arguments these are:
//
//   Problem, Choice     what its check makes of arguments, and its choice of a problem
//   Params              the parameters of each launch; of(step) is the address of one
//   name                as its call, the registry and sentences have it
//   otherwise           what to do where no kernel can: the end of a sentence
//   device(args)        where the tensors are
//   rank(problem, facts, kernel)        the candidates, and the choice of the first accepted;
//                                       `kernel` is the only one where it is named
//   steps(choice), scratch(choice)      what is launched, and the memory beside the tensors
//   tell(explanation, problem, choice)  what explain says beyond that; may be missing
//   fill(args, problem, choice)         the parameters, addresses apart
//   set_addresses(params, args, choice, scratch)    those, at each launch
//   run_empty(args, problem, backend, stream)       what is written where there are no rows; may
//                                                   be missing
//   run_reference(args)
//
// The arguments have an overload of checks::check, the problem one of checks::has_no_rows, and
// CallFields lists the fields.
template <class Args>
struct OperationOf;

struct Step {
    policy::Spec spec;
    policy::Geometry geometry;
};

// The launches of a call in their order. The last is the one that the call is named by.
class Steps {
  public:
    static constexpr std::size_t most = 4;

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
};

}  // namespace jitney
