// Index tensors, which are int32 to the calls, of files that hold them as int64.
#pragma once

#include <string_view>

#include "cli/memory.hpp"

namespace jitney::cli {

// The same values as int32, of a contiguous int64 tensor. Throws Error that names the first value
// that is none.
HostTensor narrowed(std::string_view name, const Tensor& tensor);

}  // namespace jitney::cli
