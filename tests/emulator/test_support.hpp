// What the tests of the machine share.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "tests/emulator/machine/fault.hpp"
#include "tests/emulator/machine/instrumented.hpp"
#include "tests/emulator/machine/launch.hpp"
#include "tests/emulator/machine/memory.hpp"
#include "tests/emulator/seed.hpp"

namespace jitney::emulator {

template <class Params>
void run_kernel(const Kernel& kernel, unsigned blocks, unsigned threads, int shared_bytes,
                const Params& params, std::uint64_t seed = run_seed(), unsigned workers = 1) {
    runtime::LaunchShape shape;
    shape.grid.x = blocks;
    shape.block.x = threads;
    shape.shared_bytes = shared_bytes;
    Params copy = params;
    void* arguments[] = {&copy};
    launch(kernel, shape, arguments, {.seed = seed, .workers = workers});
}

// The report of the fault that running ends in; empty where there was none.
template <class Params>
std::string fault_of(const Kernel& kernel, unsigned blocks, unsigned threads, int shared_bytes,
                     const Params& params, std::uint64_t seed = run_seed()) {
    try {
        run_kernel(kernel, blocks, threads, shared_bytes, params, seed);
    } catch (const Fault& fault) {
        return fault.what();
    }
    return {};
}

// What a process says that only does this; what it throws, too.
std::string last_words(const std::function<void()>& work);

// For accesses to memory that the instrumented kernel reports, and that end the process under
// AddressSanitizer.
template <class Params>
std::string memory_fault_of(const Kernel& kernel, unsigned blocks, unsigned threads,
                            int shared_bytes, const Params& params) {
    if constexpr (kInstrumented) return fault_of(kernel, blocks, threads, shared_bytes, params);
    return last_words([&] { run_kernel(kernel, blocks, threads, shared_bytes, params); });
}

// A buffer of 0, 1, 2...
inline Buffer counting(unsigned count) {
    Buffer buffer(count * sizeof(float), "in");
    for (unsigned i = 0; i < count; ++i)
        buffer.as<float>()[i] = static_cast<float>(i);
    buffer.make_read_only();
    return buffer;
}

inline Buffer output(unsigned count) {
    return Buffer(count * sizeof(float), "out");
}

}  // namespace jitney::emulator

#define CHECK_SAYS(text, part)                       \
    do {                                             \
        const std::string says = (text);             \
        CAPTURE(says);                               \
        CHECK(says.find(part) != std::string::npos); \
    } while (false)

// The report of a wrong access to memory: the machine's own, or that of AddressSanitizer.
#define CHECK_MEMORY_FAULT(text, part) \
    CHECK_SAYS(text, jitney::emulator::kInstrumented ? part : "AddressSanitizer")
