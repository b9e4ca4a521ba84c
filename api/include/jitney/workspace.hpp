// Device memory that kernels need beside their tensors. The library keeps its own for each stream;
// a caller that wants to own it gives it with the call.
#pragma once

#include <cstddef>

#include "jitney/error.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// Memory on the tensors' GPU, aligned to 256 bytes, and as large as workspace_bytes() says, or
// larger. init_workspace() prepares it once; after that calls of every kind may use it, one after
// the other: those of one thread on one stream, or of one graph that is one chain. Launches that
// may run at the same time, and calls that threads make at the same time, need memory of their own.
struct Workspace {
    void* data = nullptr;  // null: the library's own
    std::size_t bytes = 0;
};

// Clears what calls expect to be clear, and leave so. Needed again only where something else wrote
// to the memory. Asynchronous on `stream`, which is that of the calls, or comes before them.
JITNEY_API void init_workspace(const Workspace& workspace, Device device = {},
                               Stream stream = nullptr);

}  // namespace jitney
