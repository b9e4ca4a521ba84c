// What a tensor's scaling remembers from step to step: a row of fp32 in the memory of the GPU.
#pragma once

namespace jitney {

// The columns of a row. Behind them stand the amax of the last steps, the latest first. A row of
// zeros is a new one: a multiplier is never 0 once a step has made it.
enum Fp8StateColumn : int {
    kFp8StateMultiplier = 0,  // of the next step; 0: there is no history to make one of
    kFp8StateScale = 1,       // its inverse
    kFp8StateAmax = 2,        // of the last step's tensor
    kFp8StateDequant = 3,     // what a GEMM of the last step was corrected by
    kFp8StateHistory = 4,
};

// What the codes of a step are worth that was cast by the row. Without a history, the cast has left
// the scale that it took from its tensor, unless there was nothing to cast.
constexpr float fp8_scale_of_state(const float* row) {
    const bool none = row[kFp8StateMultiplier] == 0.0f && row[kFp8StateScale] == 0.0f;
    return none ? 1.0f : row[kFp8StateScale];
}

}  // namespace jitney
