// Atomics on global and shared memory. Compiled apart, so that a compiler that instruments
// kernels does not rewrite them.
#pragma once

#include "tests/emulator/machine/device.hpp"

#define JITNEY_ATOMIC(name, type)        \
    type name(type* address, type value, \
              jitney::emulator::Where where = jitney::emulator::Where::here());
#define JITNEY_ATOMIC_CAS(type)                              \
    type atomicCAS(type* address, type expected, type value, \
                   jitney::emulator::Where where = jitney::emulator::Where::here());

JITNEY_ATOMIC(atomicAdd, int)
JITNEY_ATOMIC(atomicAdd, unsigned)
JITNEY_ATOMIC(atomicAdd, unsigned long long)
JITNEY_ATOMIC(atomicAdd, float)
JITNEY_ATOMIC(atomicAdd, double)
JITNEY_ATOMIC(atomicMax, int)
JITNEY_ATOMIC(atomicMax, unsigned)
JITNEY_ATOMIC(atomicMax, unsigned long long)
JITNEY_ATOMIC(atomicMin, int)
JITNEY_ATOMIC(atomicMin, unsigned)
JITNEY_ATOMIC(atomicMin, unsigned long long)
JITNEY_ATOMIC(atomicAnd, int)
JITNEY_ATOMIC(atomicAnd, unsigned)
JITNEY_ATOMIC(atomicOr, int)
JITNEY_ATOMIC(atomicOr, unsigned)
JITNEY_ATOMIC(atomicExch, int)
JITNEY_ATOMIC(atomicExch, unsigned)
JITNEY_ATOMIC(atomicExch, unsigned long long)
JITNEY_ATOMIC(atomicExch, float)
JITNEY_ATOMIC(atomicInc, unsigned)
JITNEY_ATOMIC_CAS(int)
JITNEY_ATOMIC_CAS(unsigned)
JITNEY_ATOMIC_CAS(unsigned long long)

#undef JITNEY_ATOMIC
#undef JITNEY_ATOMIC_CAS

void __threadfence();
void __threadfence_block();
void __threadfence_system();
