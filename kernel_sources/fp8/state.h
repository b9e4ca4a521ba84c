// What a tensor's scaling remembers from step to step: a row of fp32 in the memory of the GPU.
#pragma once

namespace jitney {

// The columns of a row. Behind them stand the amax of the last steps, the latest first.
enum Fp8StateColumn : int {
    kFp8StateMultiplier = 0,  // of the next step
    kFp8StateScale = 1,       // its inverse
    kFp8StateAmax = 2,        // of the last step's tensor
    kFp8StateDequant = 3,     // what a GEMM of the last step was corrected by
    kFp8StateHistory = 4,
};

}  // namespace jitney
