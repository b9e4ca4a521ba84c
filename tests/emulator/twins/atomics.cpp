#include "tests/emulator/twins/atomics.hpp"

#include <algorithm>
#include <atomic>

namespace {

using jitney::emulator::Where;

template <class T, class Change>
T change(T* address, Where where, Change change) {
    jitney::emulator::before_atomic(address, sizeof(T), where);
    const std::atomic_ref<T> target(*address);
    T old = target.load();
    while (!target.compare_exchange_weak(old, change(old))) {
    }
    jitney::emulator::yield_block_point();
    return old;
}

}  // namespace

#define JITNEY_ATOMIC(name, type, expression)                                            \
    type name(type* address, type value, Where where) {                                  \
        return change(address, where, [value](type old) -> type { return expression; }); \
    }
#define JITNEY_ATOMIC_CAS(type)                                                               \
    type atomicCAS(type* address, type expected, type value, Where where) {                   \
        return change(address, where,                                                         \
                      [expected, value](type old) { return old == expected ? value : old; }); \
    }

// Signed addition wraps around on a GPU.
JITNEY_ATOMIC(atomicAdd, int,
              static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value)))
JITNEY_ATOMIC(atomicAdd, unsigned, old + value)
JITNEY_ATOMIC(atomicAdd, unsigned long long, old + value)
JITNEY_ATOMIC(atomicAdd, float, old + value)
JITNEY_ATOMIC(atomicAdd, double, old + value)
JITNEY_ATOMIC(atomicMax, int, std::max(old, value))
JITNEY_ATOMIC(atomicMax, unsigned, std::max(old, value))
JITNEY_ATOMIC(atomicMax, unsigned long long, std::max(old, value))
JITNEY_ATOMIC(atomicMin, int, std::min(old, value))
JITNEY_ATOMIC(atomicMin, unsigned, std::min(old, value))
JITNEY_ATOMIC(atomicMin, unsigned long long, std::min(old, value))
JITNEY_ATOMIC(atomicAnd, int, old& value)
JITNEY_ATOMIC(atomicAnd, unsigned, old& value)
JITNEY_ATOMIC(atomicOr, int, old | value)
JITNEY_ATOMIC(atomicOr, unsigned, old | value)
JITNEY_ATOMIC(atomicExch, int, (static_cast<void>(old), value))
JITNEY_ATOMIC(atomicExch, unsigned, (static_cast<void>(old), value))
JITNEY_ATOMIC(atomicExch, unsigned long long, (static_cast<void>(old), value))
JITNEY_ATOMIC(atomicExch, float, (static_cast<void>(old), value))
JITNEY_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
JITNEY_ATOMIC_CAS(int)
JITNEY_ATOMIC_CAS(unsigned)
JITNEY_ATOMIC_CAS(unsigned long long)

void __threadfence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    jitney::emulator::yield_point();
}

void __threadfence_block() {
    __threadfence();
}

void __threadfence_system() {
    __threadfence();
}
