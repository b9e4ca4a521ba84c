// A stack and a place in the code: what a thread of a block runs on.
#pragma once

#include <cstddef>

namespace jitney::emulator {

class Fiber {
  public:
    using Entry = void (*)(void* argument);

    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // The next resume() calls entry(argument), which must not return: it suspends for good.
    // Whatever was suspended here before is forgotten, not unwound.
    void start(Entry entry, void* argument);

    // Runs the fiber until it suspends. Not from within a fiber.
    void resume();

    // Goes back to whoever resumed this fiber. From within it.
    void suspend();

  private:
    struct Switch;

    std::byte* stack_;  // its lowest byte; a guard page lies below
    void* context_ = nullptr;
    void* resumer_ = nullptr;
    Entry entry_ = nullptr;
    void* argument_ = nullptr;
    const void* resumer_stack_ = nullptr;  // for AddressSanitizer
    std::size_t resumer_stack_size_ = 0;
    void* fake_stack_ = nullptr;
};

}  // namespace jitney::emulator
