// The tile of fp8_gemm_wgmma: what a block multiplies at a time, and how K is divided among the
// blocks of a cluster.
#pragma once

#include <vector>

#include "operations/fp8_gemm/choose.hpp"

namespace jitney::policy {

struct Fp8WgmmaTile {
    int m = 0;
    int n = 0;
    bool swap = false;  // rows of the output are columns to the tensor cores: for few of them
    int stages = 0;     // of the ring in shared memory
    int splits = 1;     // of K
    int pieces = 0;     // of the output that a warp has under way to the copy engine
};

// All tiles that problems with these formats and this alignment may get.
std::vector<Fp8WgmmaTile> fp8_wgmma_tiles(const Fp8GemmProblem& problem);

// The one that takes the least time.
Fp8WgmmaTile fp8_wgmma_tile(const Fp8GemmProblem& problem, const DeviceFacts& facts);

Spec fp8_wgmma_spec(const Fp8GemmProblem& problem, const Fp8WgmmaTile& tile,
                    const DeviceFacts& facts);

// Of a block of it.
int fp8_wgmma_threads(const Spec& spec);

}  // namespace jitney::policy
