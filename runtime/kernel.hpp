// What the layers above hand to this room, and what they get back: a key that finds a loaded
// kernel in memory, the texts that can make it, and the shape of a launch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct CUkern_st;

namespace jitney::runtime {

// Names a kernel in memory. Opaque here: the caller packs its specialization into it.
struct KernelKey {
    std::array<std::uint64_t, 5> words{};
    friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

// A header under the name by which it is included.
struct Header {
    std::string name;
    std::string text;
};

// All that is needed to make the kernel. Asked for only when it is not loaded yet.
struct KernelSource {
    std::string specialization;        // its text: the name in logs, errors and the cache
    std::string arch;                  // "sm_90a"
    std::string translation_unit;      // includes embedded sources by their names
    std::string key_unit;              // in the cache's key instead of it; empty: itself
    std::string function;              // NVRTC name expression of the __global__ function
    std::vector<std::string> options;  // NVRTC options beyond the standard ones
    int shared_bytes = 0;              // dynamic shared memory a block, set at load

    // The rest is of a caller's own kernel. Its unit includes these headers, and no embedded
    // source; every name that a text includes is among them, so that no file is looked for.
    std::optional<std::vector<Header>> headers;
    std::string file = "jitney.cu";  // the unit's name
    std::string provided_by;         // what fills the cache; empty: jitney prewarm --spec
};

// Makes the texts of a key; a plain function and a context, so that passing one costs nothing.
struct Describe {
    KernelSource (*make)(const void* context, const KernelKey& key) = nullptr;
    const void* context = nullptr;
    KernelSource operator()(const KernelKey& key) const { return make(context, key); }
};

// A loaded kernel. The handle is the driver's context-independent CUkernel.
struct Kernel {
    CUkern_st* handle = nullptr;
    int registers = 0;     // a thread
    int local_bytes = 0;   // a thread: spills and stack
    int shared_bytes = 0;  // dynamic, a block
    int static_shared_bytes = 0;
    int parameter_bytes = -1;  // of all together; -1: the machine code does not tell
};

struct Dim3 {
    unsigned x = 1;
    unsigned y = 1;
    unsigned z = 1;
    friend bool operator==(const Dim3&, const Dim3&) = default;
};

struct LaunchShape {
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;                         // 1 x 1 x 1: no cluster attribute
    int shared_bytes = 0;                 // dynamic, a block
    bool programmatic_dependent = false;  // may start before its predecessor in the stream ends
};

}  // namespace jitney::runtime
