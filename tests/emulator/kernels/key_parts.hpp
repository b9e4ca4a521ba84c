// The division of keys among blocks, as the kernels compute it.
#pragma once

namespace jitney::emulator {

struct KeySplitting {
    int blocks;      // a tile
    int part_keys;   // AttentionParams::split_keys
    int most_parts;  // and split_parts
    int step;
};

struct Part {
    int first;
    int end;
    int parts;  // of the tile
};

// Of the block number `block` where a tile sees the keys [first, end).
Part part_of(const KeySplitting& splitting, int first, int end, int block);

}  // namespace jitney::emulator
