// AddressSanitizer's notes on memory and stacks; nothing where it is off.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JITNEY_EMULATOR_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define JITNEY_EMULATOR_ASAN 1
#endif

#ifdef JITNEY_EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace jitney::emulator::sanitizer {

#ifdef JITNEY_EMULATOR_ASAN

constexpr bool kOn = true;

inline void forbid(const void* begin, std::size_t bytes) {
    __asan_poison_memory_region(begin, bytes);
}
inline void allow(const void* begin, std::size_t bytes) {
    __asan_unpoison_memory_region(begin, bytes);
}
inline bool forbidden(const void* begin, std::size_t bytes) {
    return __asan_region_is_poisoned(const_cast<void*>(begin), bytes) != nullptr;
}
inline void switching(void** fake_stack, const void* stack, std::size_t bytes) {
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
}
inline void switched(void* fake_stack, const void** from, std::size_t* bytes) {
    __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
}

#else

constexpr bool kOn = false;

inline void forbid(const void*, std::size_t) {}
inline void allow(const void*, std::size_t) {}
inline bool forbidden(const void*, std::size_t) {
    return false;
}
inline void switching(void**, const void*, std::size_t) {}
inline void switched(void*, const void**, std::size_t*) {}

#endif

}  // namespace jitney::emulator::sanitizer
