// The copies of whole runs of bytes and of boxes of tensors that are on the way between global and
// shared memory: they land one by one, at a moment that chance picks.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "tests/emulator/machine/tensor_map.hpp"

namespace jitney::emulator {

class Block;

struct Copy {
    bool store = false;
    Block* block = nullptr;  // whose shared memory
    std::size_t offset = 0;  // there
    unsigned bytes = 0;
    TensorMap map;  // of no dimensions: `bytes` from `global` on
    std::array<int, 5> corner{};
    const std::byte* global = nullptr;
    std::size_t barrier = 0;      // of a load: the offset of the one that counts
    const void* place = nullptr;  // of the code that asked for it
    unsigned thread = 0;          // of a store: who did, in the cluster
    unsigned group = 0;           // and the number of its group of stores
    // Of a store: the bytes in the order of the box. Of a load: what comes from registers.
    std::vector<std::byte> stored;

    // Calls body(where it stands in global memory, where in the box, bytes) for each run of bytes
    // that lies within the tensor.
    template <class Body>
    void for_each_run(const Body& body) const {
        if (map.rank == 0) {
            body(global, 0u, bytes);
            return;
        }
        for (unsigned row = 0; row < map.rows(); ++row) {
            const BoxRow run = row_of_box(map, corner, row);
            if (run.bytes != 0) body(run.begin, row * map.row_bytes() + run.first, run.bytes);
        }
    }
};

class CopyEngine {
  public:
    void clear() { on_the_way_.clear(); }
    bool empty() const { return on_the_way_.empty(); }
    void add(Copy copy) { on_the_way_.push_back(std::move(copy)); }
    std::size_t size() const { return on_the_way_.size(); }
    // Lands one of them.
    void land(std::size_t number);
    // Lands the stores of a thread's groups up to that one.
    void land_stores(unsigned thread, unsigned group);
    // Whether one is on the way to this block's shared memory.
    bool serves(const Block& block) const;

  private:
    std::vector<Copy> on_the_way_;
};

}  // namespace jitney::emulator
