// What kernels call at every access to memory: they are compiled with -fsanitize=thread, which
// inserts these calls, but they are linked with this file in place of ThreadSanitizer.
#include <utility>

#include "tests/emulator/machine/block.hpp"
#include "tests/emulator/machine/device.hpp"
#include "tests/emulator/machine/memory.hpp"

namespace jitney::emulator {
namespace {

// `alignment`: what the compiler takes the address for a multiple of.
void note(const void* address, std::size_t bytes, std::size_t alignment, bool write,
          const void* place) {
    if (current_thread == nullptr) return;
    Thread& thread = *current_thread;
    const char* const does = write ? "writes" : "reads";
    if (thread.block->arena().near(address)) {
        thread.block->access(thread, address, bytes, write, place);
        check_alignment(address, bytes, alignment, does, place);
    } else if (in_device_memory(address)) {
        check_alignment(address, bytes, alignment, does, place);
        std::string wrong = objection(address, bytes, write);
        if (wrong.empty()) wrong = too_early(address);
        if (wrong.empty()) return;
        wrong += ", at " + place_of_code(place);
        fault(std::move(wrong), {});
    }
}

}  // namespace
}  // namespace jitney::emulator

#define JITNEY_HOOK(name, bytes, alignment, write)                                             \
    void name(void* address);                                                                  \
    void name(void* address) {                                                                 \
        jitney::emulator::note(address, bytes, alignment, write, __builtin_return_address(0)); \
    }

#define JITNEY_HOOKS(bytes)                                             \
    JITNEY_HOOK(__tsan_read##bytes, bytes, bytes, false)                \
    JITNEY_HOOK(__tsan_write##bytes, bytes, bytes, true)                \
    JITNEY_HOOK(__tsan_unaligned_read##bytes, bytes, 1, false)          \
    JITNEY_HOOK(__tsan_unaligned_write##bytes, bytes, 1, true)          \
    JITNEY_HOOK(__tsan_volatile_read##bytes, bytes, bytes, false)       \
    JITNEY_HOOK(__tsan_volatile_write##bytes, bytes, bytes, true)       \
    JITNEY_HOOK(__tsan_unaligned_volatile_read##bytes, bytes, 1, false) \
    JITNEY_HOOK(__tsan_unaligned_volatile_write##bytes, bytes, 1, true)

extern "C" {

JITNEY_HOOKS(1)
JITNEY_HOOKS(2)
JITNEY_HOOKS(4)
JITNEY_HOOKS(8)
JITNEY_HOOKS(16)

void __tsan_read_range(void* address, std::size_t bytes);
void __tsan_read_range(void* address, std::size_t bytes) {
    jitney::emulator::note(address, bytes, 1, false, __builtin_return_address(0));
}

void __tsan_write_range(void* address, std::size_t bytes);
void __tsan_write_range(void* address, std::size_t bytes) {
    jitney::emulator::note(address, bytes, 1, true, __builtin_return_address(0));
}

void __tsan_init();
void __tsan_init() {}
void __tsan_func_entry(void* caller);
void __tsan_func_entry(void*) {}
void __tsan_func_exit();
void __tsan_func_exit() {}
void __tsan_vptr_update(void** pointer, void* value);
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void** pointer);
void __tsan_vptr_read(void**) {}

}  // extern "C"
