// DLPack's tensors as those of Jitney.
#pragma once

#include <optional>

#include "jitney/jitney.h"
#include "jitney/tensor.hpp"

namespace jitney::c_abi {

// The views that the DLTensor describes. Throw Error(invalid_argument), which calls it `name`, for
// one that is null where it has to be given, or that is no tensor of Jitney.
Tensor required(const DLTensor* given, const char* name);
std::optional<Tensor> optional(const DLTensor* given, const char* name);

}  // namespace jitney::c_abi
