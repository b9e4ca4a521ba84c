// Twin of kernel_sources/common/tensor_copy.cuh: boxes land late, one by one, at a moment that
// chance picks.
#pragma once

#include <array>

#include "common/shared.cuh"
#include "common/tensor_map.h"
#include "tests/emulator/machine/async.hpp"

namespace jitney {

JITNEY_DEVICE void tensor_map_prefetch(const TensorMapBits* map,
                                       emulator::Where where = emulator::Where::here()) {
    emulator::check_tensor_map(*map, where);
}

// With as many coordinates as the map has dimensions.
JITNEY_DEVICE void tensor_load(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                               int x0, int x1, emulator::Where where = emulator::Where::here()) {
    emulator::tensor_load(to, *map, barrier, 0, std::array{x0, x1}, where);
}
JITNEY_DEVICE void tensor_load(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                               int x0, int x1, int x2, int x3,
                               emulator::Where where = emulator::Where::here()) {
    emulator::tensor_load(to, *map, barrier, 0, std::array{x0, x1, x2, x3}, where);
}
JITNEY_DEVICE void tensor_load(SharedAddress to, const TensorMapBits* map, SharedAddress barrier,
                               int x0, int x1, int x2, int x3, int x4,
                               emulator::Where where = emulator::Where::here()) {
    emulator::tensor_load(to, *map, barrier, 0, std::array{x0, x1, x2, x3, x4}, where);
}

JITNEY_DEVICE void tensor_load_multicast(SharedAddress to, const TensorMapBits* map,
                                         SharedAddress barrier, unsigned short blocks, int x0,
                                         int x1, emulator::Where where = emulator::Where::here()) {
    emulator::tensor_load(to, *map, barrier, blocks, std::array{x0, x1}, where);
}
JITNEY_DEVICE void tensor_load_multicast(SharedAddress to, const TensorMapBits* map,
                                         SharedAddress barrier, unsigned short blocks, int x0,
                                         int x1, int x2, int x3,
                                         emulator::Where where = emulator::Where::here()) {
    emulator::tensor_load(to, *map, barrier, blocks, std::array{x0, x1, x2, x3}, where);
}

JITNEY_DEVICE void tensor_store(const TensorMapBits* map, SharedAddress from, int x0, int x1,
                                emulator::Where where = emulator::Where::here()) {
    emulator::tensor_store(*map, from, std::array{x0, x1}, where);
}
JITNEY_DEVICE void tensor_store(const TensorMapBits* map, SharedAddress from, int x0, int x1,
                                int x2, int x3, emulator::Where where = emulator::Where::here()) {
    emulator::tensor_store(*map, from, std::array{x0, x1, x2, x3}, where);
}
JITNEY_DEVICE void tensor_store(const TensorMapBits* map, SharedAddress from, int x0, int x1,
                                int x2, int x3, int x4,
                                emulator::Where where = emulator::Where::here()) {
    emulator::tensor_store(*map, from, std::array{x0, x1, x2, x3, x4}, where);
}

}  // namespace jitney
