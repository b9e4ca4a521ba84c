// What is said where no kernel can run a call, or not the one that was named.
#pragma once

#include <string_view>
#include <vector>

#include "operations/decision.hpp"
#include "policy/candidates.hpp"

namespace jitney {

// The named kernel can't: an error where the decision is strict, else a warning, once.
void refuse_or_warn(const std::vector<policy::Candidate>& candidates, const Decision& decision,
                    std::string_view operation);

// None can. `otherwise` says what to do instead.
[[noreturn]] void throw_none(const std::vector<policy::Candidate>& candidates,
                             std::string_view operation, std::string_view device,
                             std::string_view otherwise);

// `called` is a kernel, and the tensors are in host memory.
[[noreturn]] void refuse_host(std::string_view called, std::string_view operation);

}  // namespace jitney
