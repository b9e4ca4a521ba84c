// Twin of kernel_sources/common/register_share.cuh: the machine counts the registers, and a
// warpgroup that takes more than others gave waits for ever.
#pragma once

#include "common/builtins.cuh"
#include "tests/emulator/machine/async.hpp"

namespace jitney {

template <int registers>
JITNEY_DEVICE void give_registers(emulator::Where where = emulator::Where::here()) {
    emulator::share_registers(registers, false, where);
}

template <int registers>
JITNEY_DEVICE void take_registers(emulator::Where where = emulator::Where::here()) {
    emulator::share_registers(registers, true, where);
}

}  // namespace jitney
