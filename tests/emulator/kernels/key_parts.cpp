// Compiled as the kernels are.
#include "tests/emulator/kernels/key_parts.hpp"

#include "attention/split.cuh"

namespace jitney::emulator {

Part part_of(const KeySplitting& splitting, int first, int end, int block) {
    AttentionParams params{};
    params.splits = splitting.blocks;
    params.split_keys = splitting.part_keys;
    params.split_parts = splitting.most_parts;
    const KeyPart part = key_part(params, {first, end}, block, splitting.step);
    return {part.keys.first, part.keys.end, part.parts};
}

}  // namespace jitney::emulator
