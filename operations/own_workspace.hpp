// The memory that launches need beside their tensors: the caller's workspace, or the library's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitney/workspace.hpp"
#include "runtime/workspace.hpp"

namespace jitney {

struct ScratchBytes {
    std::size_t counters = 0;  // zero before the first launch, kept zero by it
    std::size_t data = 0;
};

// What the caller has to give for such a launch; 0 where it needs nothing.
std::size_t own_workspace_bytes(const ScratchBytes& needed) noexcept;

// There is memory where bytes are, and it is aligned. Runs on every call.
inline constexpr std::size_t kWorkspaceAlignment = 256;
inline bool can_be_given(const Workspace& workspace) noexcept {
    return (workspace.data != nullptr || workspace.bytes == 0) &&
           reinterpret_cast<std::uintptr_t>(workspace.data) % kWorkspaceAlignment == 0;
}

namespace look {
// Of a field of that name, whatever was given when the call was prepared.
template <class Args>
bool at_workspace(const Args& args, const Args&) noexcept {
    return can_be_given(args.workspace);
}
}  // namespace look

// Throws where it can't: for calls that need no memory as well, those on the host among them.
void check_given(const Workspace& workspace);

struct Scratch {
    void* data = nullptr;
    void* counters = nullptr;
};

// Held until the launches are in the stream. Throws Error where the caller's workspace is too small
// or not aligned, or where there is no memory. May put a clearing of counters into the stream.
class HeldScratch {
  public:
    HeldScratch(const Workspace& given, const ScratchBytes& needed, Stream stream);

    const Scratch& place() const noexcept { return place_; }

  private:
    runtime::Workspace taken_;
    Scratch place_;
};

}  // namespace jitney
