// What the library reads of a Scope.
#pragma once

#include <optional>
#include <string>

#include "jitney/backend.hpp"
#include "policy/kernels.hpp"

namespace jitney {

struct ScopeAccess {
    // The innermost scope of this thread; null where there is none.
    static const Scope* innermost() noexcept;
    static Backend backend(const Scope& scope) noexcept { return scope.backend_; }
    static std::optional<policy::KernelId> kernel(const Scope& scope) noexcept {
        if (scope.kernel_ < 0) return std::nullopt;
        return static_cast<policy::KernelId>(scope.kernel_);
    }
};

// "attn_decode_scalar, attn_decode_mma, ...", for sentences.
std::string kernel_names();

}  // namespace jitney
