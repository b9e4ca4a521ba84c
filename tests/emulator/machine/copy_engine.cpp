#include "tests/emulator/machine/copy_engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/emulator/machine/block.hpp"
#include "tests/emulator/machine/memory.hpp"

namespace jitney::emulator {

void CopyEngine::land(std::size_t number) {
    Copy copy = std::move(on_the_way_[number]);
    on_the_way_.erase(on_the_way_.begin() + static_cast<std::ptrdiff_t>(number));
    if (!copy.store) {
        if (!copy.stored.empty()) return copy.block->land(copy, copy.stored);
        std::vector<std::byte> box(copy.bytes);
        copy.for_each_run([&box](const std::byte* from, unsigned at, unsigned bytes) {
            copy_or_spoil(from, {box.data() + at, bytes});
        });
        copy.block->land(copy, box);
        return;
    }
    copy.for_each_run([&copy](const std::byte* to, unsigned at, unsigned bytes) {
        std::memcpy(const_cast<std::byte*>(to), copy.stored.data() + at, bytes);
    });
}

void CopyEngine::land_stores(unsigned thread, unsigned group) {
    for (std::size_t i = on_the_way_.size(); i > 0; --i) {
        const Copy& copy = on_the_way_[i - 1];
        if (copy.store && copy.thread == thread && copy.group <= group) land(i - 1);
    }
}

bool CopyEngine::serves(const Block& block) const {
    return std::ranges::any_of(
        on_the_way_, [&](const Copy& copy) { return !copy.store && copy.block == &block; });
}

}  // namespace jitney::emulator
