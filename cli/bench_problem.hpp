// A problem as a benchmark sees it: what its call computes and moves, and the values that its
// tensors need.
#pragma once

#include "cli/bench.hpp"
#include "cli/field_problem.hpp"

namespace jitney::cli {

BenchWork work_of(const FieldProblem& problem);
BenchCall call_of(const FieldProblem& problem, Device device);

}  // namespace jitney::cli
