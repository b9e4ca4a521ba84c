// Which backend and kernel run a call, and which did.
//
// Precedence: a Scope in code (strict: the call fails rather than switch) > JITNEY_BACKEND
// (jit | reference) and JITNEY_FORCE (a kernel's name, such as attn_decode_mma) in the environment,
// read once a process (the call falls back where they can't be followed, and says so once) > the
// default order: jit for tensors on a GPU, reference for tensors on the host.
#pragma once

#include <string>
#include <string_view>

#include "jitney/error.hpp"
#include "jitney/export.hpp"

namespace jitney {

enum class Backend { jit, reference };

// While it lives, calls of this thread use this backend, and this kernel where one is named. A
// kernel binds the calls of its own operation; to the others it says no more than Backend::jit.
// Scopes nest, the innermost counts, and they end in the reverse order on the thread they began on.
class JITNEY_API Scope {
  public:
    // Throw Error where there is no such backend, or kernel.
    explicit Scope(Backend backend);
    explicit Scope(std::string_view kernel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    friend struct ScopeAccess;
    const Scope* outer_;  // what was in force before
    Backend backend_ = Backend::jit;
    int kernel_ = -1;  // -1: the policy's choice
};

// What this thread's last call ran: a specialization's text, "reference" for the reference
// backend, or "" where nothing had to be computed or the call failed.
JITNEY_API std::string last_run();

}  // namespace jitney
