// Which backend and kernel run a call, and which did.
//
// Precedence: a Scope in code (strict: the call fails rather than switch) > JITNEY_BACKEND
// (jit | reference) and JITNEY_FORCE (a kernel's name, such as attn_decode_mma) in the environment
// (the call falls back where they can't be followed, and says so once) > the default order: jit for
// tensors on a GPU, reference for tensors on the host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jitney/export.hpp"

namespace jitney {

enum class Backend { jit, reference };

// While it lives, calls of this thread use this backend, and this kernel where one is named.
// Scopes nest; the innermost counts.
class JITNEY_API Scope {
  public:
    explicit Scope(Backend backend);
    // Throws Error where there is no such kernel.
    explicit Scope(std::string_view kernel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    struct State;
    State* outer_;  // what was in force before
    State* mine_;
};

// What this thread's last call ran: a specialization's text, "reference" for the reference
// backend, or "" where nothing had to be computed.
JITNEY_API std::string last_run();

}  // namespace jitney
