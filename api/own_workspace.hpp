// A caller's workspace, and where in it a launch finds what it needs.
#pragma once

#include <cstddef>

#include "jitney/workspace.hpp"
#include "policy/attention.hpp"

namespace jitney {

// What the caller has to give for such a launch; 0 where it needs nothing.
std::size_t own_workspace_bytes(const policy::AttentionWorkspace& needed) noexcept;

// That there is memory where bytes are.
void check_given(const Workspace& workspace);

struct Scratch {
    void* data = nullptr;
    void* counters = nullptr;
};

// Throws Error where the workspace is too small or not aligned. May put a clearing of counters into
// the stream.
Scratch place_in(const Workspace& workspace, const policy::AttentionWorkspace& needed,
                 Stream stream);

}  // namespace jitney
