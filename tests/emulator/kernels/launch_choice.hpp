// From a choice of the policy to a launch on the emulator, as the library goes to one on a GPU.
#pragma once

#include "policy/candidates.hpp"
#include "policy/spec.hpp"
#include "tests/support/random.hpp"

namespace jitney::emulator {

// `params` is the kernel's only parameter. A fault ends the test case, with the report as its
// message.
void launch_choice(const policy::Spec& spec, const policy::Geometry& geometry, void* params,
                   tests::Random& random);

}  // namespace jitney::emulator
