// Which backend a call takes, and which kernel where one is named: the scopes of the thread, the
// environment, and the default order, in this precedence.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jitney/backend.hpp"
#include "jitney/tensor.hpp"
#include "policy/kernels.hpp"

namespace jitney {

struct Decision {
    Backend backend = Backend::jit;
    std::optional<policy::KernelId> kernel;
    bool strict = false;  // from a scope: fail rather than switch
    friend bool operator==(const Decision&, const Decision&) = default;
};

// `operation` is the name of the call, as the registry has it. Where its tensors are decides what
// can be followed. Throws Error where a scope asks for the backend that these tensors can't have.
Decision decide(std::string_view operation, const Device& device);

// The kernel that is named for this operation, whatever the tensors.
std::optional<policy::KernelId> named_kernel(std::string_view operation);

// Says once that JITNEY_FORCE can't be followed here.
void warn_not_forced(policy::KernelId kernel, const std::string& reason);

}  // namespace jitney
