// A driver that has no GPU and does as it is told: built as a library, opened through
// JITNEY_LIBCUDA. It starts as the environment says (FAKE_CUDA_VERSION, FAKE_CUDA_INIT,
// FAKE_CUDA_DEVICES="90,80"); later a test steers it through the object `fake_cuda`. With
// FAKE_CUDA_MEMORY=host its memory is host memory, and copies happen at once. With
// FAKE_CUDA_MEDDLES=1 its start and every load leave the thread another locale, rounding and errno,
// and a load another current context.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fake {

struct Cuda {
    // What it answers.
    std::atomic<int> load_result{0};      // of cuLibraryLoadData
    std::atomic<int> refused_loads{0};    // the next so many fail with load_result; -1: all
    std::atomic<int> function_result{0};  // of cuKernelGetFunction
    std::atomic<int> launch_result{0};
    std::atomic<int> allocation_result{0};
    std::atomic<int> capture_status{0};  // of every stream
    std::atomic<int> capture_result{0};  // of cuStreamIsCapturing
    std::atomic<int> memory_pools{1};
    std::atomic<int> block_threads{1024};  // the most a block of a kernel may have
    std::atomic<int> static_shared{0};     // bytes of shared memory that a kernel has by itself
    std::array<int, 3> fixed_cluster{};    // what a kernel declares

    // The parameters of every kernel; -1: it does not tell.
    struct Parameter {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };
    std::array<Parameter, 8> parameters{};
    int parameter_count = -1;

    // What it was asked.
    std::atomic<int> inits{0};
    std::atomic<int> loads{0};
    std::atomic<int> unloads{0};
    std::atomic<int> shared_grants{0};
    std::atomic<int> shared_granted{0};  // the last
    std::atomic<int> large_clusters{0};  // kernels that were let have them
    std::atomic<int> failed_parameter_queries{0};
    std::atomic<int> launches{0};
    std::atomic<int> allocations{0};  // stream-ordered
    std::atomic<int> frees{0};
    std::atomic<int> plain_allocations{0};
    std::atomic<int> clears{0};
    std::atomic<std::uint64_t> cleared_bytes{0};  // the last
    std::atomic<int> synchronizations{0};
    std::atomic<int> retains{0};
    std::atomic<int> relaxed_loads{0};  // loads while the thread's capture mode was relaxed

    // What runs at a launch, where it is set: the text of the image that the kernel is of, and the
    // launch's parameters.
    using Kernel = void (*)(const char* image, void** parameters);
    std::atomic<Kernel> kernel{nullptr};

    // The last launch.
    struct Launch {
        std::array<unsigned, 3> grid{};
        std::array<unsigned, 3> block{};
        std::array<unsigned, 3> cluster{};
        unsigned shared_bytes = 0;
        unsigned attributes = 0;
        bool programmatic = false;
        void* stream = nullptr;
        void* function = nullptr;
        // Parameters in one piece; only as much as there is room for.
        std::array<unsigned char, 64> packed{};
        std::size_t packed_bytes = 0;
    } launch;

    std::size_t address_in_maps = 0;  // the byte where the address stands in a tensor map
    int maps = 0;                     // made

    // The last tensor map.
    struct Map {
        int type = 0;
        unsigned rank = 0;
        int swizzle = 0;
        std::array<std::uint64_t, 5> size{};
        std::array<std::uint64_t, 4> stride{};
        std::array<std::uint32_t, 5> box{};
    } map;
};

}  // namespace fake
