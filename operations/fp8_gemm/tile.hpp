// The tile of fp8_gemm_mma: what a block multiplies, and how K is divided among blocks.
#pragma once

#include <vector>

#include "operations/fp8_gemm/choose.hpp"

namespace jitney::policy {

struct Fp8GemmTile {
    int m = 0;
    int n = 0;
    int stages = 0;  // of the ring in shared memory
    int splits = 1;  // of K
    int group = 1;   // tiles of M that neighbouring blocks share
};

// All tiles that problems with these formats, transpositions and alignment may get.
std::vector<Fp8GemmTile> fp8_gemm_tiles(const Fp8GemmProblem& problem, const DeviceFacts& facts);

// The one that takes the least time.
Fp8GemmTile fp8_gemm_tile(const Fp8GemmProblem& problem, const DeviceFacts& facts);

// Whether blocks of the next launch may begin before those of the one before have ended: they take
// the places of an SM beside those that run there, and two of them might then share an SM while
// another has none. Where one block fills an SM they can't, and where the memory decides it is
// the same.
bool fp8_gemm_begins_early(const Spec& spec, const DeviceFacts& facts);

Spec fp8_gemm_spec(const Fp8GemmProblem& problem, const Fp8GemmTile& tile,
                   const DeviceFacts& facts);

}  // namespace jitney::policy
