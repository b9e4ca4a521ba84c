// The specializations whose machine code the project vouches for: those that the policy chooses for
// the shapes of common models, and for shapes at the edges of what the kernels take.
#pragma once

#include <vector>

#include "core/arch.hpp"
#include "policy/spec.hpp"

namespace jitney::tests {

enum class Extent {
    full,       // every shape of the lists
    selection,  // one shape of each kind: enough to see what an arch does to a kernel
};

// Without duplicates, in the order of the kernels and then of the shapes.
std::vector<policy::Spec> standard_catalogue(Arch arch, Extent extent);

}  // namespace jitney::tests
