// Kernels of your own: CUDA C++ text that is compiled, cached and launched as Jitney's kernels are.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "jitney/error.hpp"
#include "jitney/export.hpp"
#include "jitney/prewarm.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

namespace detail {
struct OwnKernel;
}

// A name that the text has a value for: `#define NAME VALUE` ahead of it. The value is C++ text; of
// a number or a bool it is made: 3, (-3), 0.1f, 0.1, true.
struct KernelConstant {
    std::string name;
    std::string value;

    KernelConstant() = default;
    KernelConstant(std::string constant, std::string text)
        : name(std::move(constant)), value(std::move(text)) {}
    KernelConstant(std::string constant, const char* text)
        : name(std::move(constant)), value(text) {}
    KernelConstant(std::string constant, bool given)
        : name(std::move(constant)), value(given ? "true" : "false") {}
    // Throw Error for what no literal is: infinity, NaN.
    JITNEY_API KernelConstant(std::string constant, float given);
    JITNEY_API KernelConstant(std::string constant, double given);
    template <std::integral T>
    requires(!std::same_as<T, bool>) KernelConstant(std::string constant, T given)
        : name(std::move(constant)) {
        set_integer(given < T{}, static_cast<std::uint64_t>(given));
    }
    friend bool operator==(const KernelConstant&, const KernelConstant&) = default;

  private:
    JITNEY_API void set_integer(bool negative, std::uint64_t bits);
};

// A text that `#include "NAME"` and `#include <NAME>` give, in the source and in headers.
struct KernelHeader {
    std::string name;
    std::string text;
    friend bool operator==(const KernelHeader&, const KernelHeader&) = default;
};

// The code that a kernel is made of. All of it but the last three is in the key of the cache, and
// beside the arch nothing else: no file is read and no path counts, so that a cache that was filled
// on one machine serves another.
struct KernelCode {
    std::string source = {};         // CUDA C++
    std::string function = {};       // of a __global__ function: "saxpy", "own::scale<float, 256>"
    std::string file = "kernel.cu";  // the text's name in the compiler's log: no path of a machine
    std::vector<KernelConstant> constants = {};
    std::vector<KernelHeader> headers = {};  // in any order; beside them there are none
    // Options of NVRTC, each with its value as one text: --use_fast_math, --maxrregcount=64. Those
    // that steer the arch, read or write files, or change what the library promises are refused.
    std::vector<std::string> options = {};

    // The most dynamic shared memory in bytes that a block of a launch asks for. Granted once for a
    // GPU, when the kernel is loaded.
    std::uint32_t shared_bytes = 0;
    // Clusters may have up to 16 blocks, where the GPU has room for them, instead of 8.
    bool large_clusters = false;
    // It has instructions that exist under the suffix a alone: it is compiled for sm_100a, sm_120a,
    // instead of sm_100, sm_120. (For sm_90a every kernel is; older GPUs have none.)
    bool arch_specific = false;

    friend bool operator==(const KernelCode&, const KernelCode&) = default;
};

// Numbers that are left out are 1.
struct Dim3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;
    friend bool operator==(const Dim3&, const Dim3&) = default;
};

// The shape of a launch, and where it goes.
struct KernelLaunch {
    Dim3 grid = {};                  // blocks; a multiple of the cluster
    Dim3 block = {};                 // threads
    Dim3 cluster = {};               // blocks; 1 x 1 x 1: none is asked for
    std::uint32_t shared_bytes = 0;  // dynamic, a block
    // It may start before its predecessor in the stream ends; on a GPU older than sm_90 it waits.
    bool programmatic_dependent = false;
    // The GPU whose context is current, or shall be lent to a thread that has none. -1: that of the
    // current context, or 0 where there is none.
    int device = -1;
    Stream stream = nullptr;
};

// The resources of a multiprocessor that the kernel takes.
struct KernelResources {
    int registers = 0;            // a thread
    int local_bytes = 0;          // a thread: spills and stack
    int static_shared_bytes = 0;  // a block
    int block_threads = 0;        // the most that a block may have
};

// A handle: copies, and kernels of equal code, are the same kernel, which any number of threads may
// launch at a time. What was made is kept as long as the process lives.
//
//     const jitney::Kernel saxpy({.source = text, .function = "saxpy<256>", .file = "saxpy.cu"});
//     saxpy.launch({.grid = {blocks}, .block = {256}, .stream = stream}, n, a, x, y);
class JITNEY_API Kernel {
  public:
    // Needs neither a GPU nor NVRTC: the code is checked as far as that goes without a compiler,
    // and what the compiler thinks of it is told when it is first needed. Throws Error
    // (invalid_argument) that says what can't be meant, or would not be the same everywhere: an
    // #include that names no header (computed ones are refused; what is named and not given is an
    // error of the compiler's if it is reached), __DATE__, __has_include and their kin, unknown
    // options.
    explicit Kernel(const KernelCode& code);
    // No moves: they would leave a handle of nothing.
    Kernel(const Kernel&) = default;
    Kernel& operator=(const Kernel&) = default;
    ~Kernel() = default;

    // Puts the kernel into the stream, asynchronously, with these parameters by value: each of the
    // type, to the byte, that the function declares (`0.5f` for a float, `std::int64_t{3}` for a
    // long long). Loads, and compiles, where that is still to be done on this GPU, which is an
    // Error (capture) while the stream is captured. Throws Error before anything is launched: for a
    // shape beyond what the GPU and the kernel allow, for the wrong number or sizes of parameters
    // (where the driver tells them: CUDA 12.4), and no_device where there is no GPU.
    template <class... Parameters>
    void launch(const KernelLaunch& shape, const Parameters&... parameters) const {
        static_assert((std::is_trivially_copyable_v<Parameters> && ...) &&
                          (!std::is_array_v<Parameters> && ...),
                      "parameters are passed by value, byte for byte");
        constexpr std::size_t count = sizeof...(Parameters);
        const std::array<const void*, count + 1> values{
            static_cast<const void*>(std::addressof(parameters))...};
        static constexpr std::array<std::size_t, count + 1> sizes{sizeof(Parameters)...};
        launch_values(shape, std::span(values.data(), count), std::span(sizes.data(), count));
    }
    // The same for callers that know their parameters as addresses, none of them null, and bytes.
    void launch_values(const KernelLaunch& shape, std::span<const void* const> values,
                       std::span<const std::size_t> sizes) const;
    // All parameters in one piece, as a struct of the same members in the same order has them: each
    // at a multiple of its alignment. Kernels of one parameter that is a struct have launch().
    void launch_packed(const KernelLaunch& shape, std::span<const std::byte> parameters) const;

    // Loads it for a GPU (KernelLaunch::device), so that the first launch, or one that is captured,
    // finds it.
    KernelResources load(int device = -1) const;

    // Compiles it into the cache unless it is there, for an arch such as "sm_90a", without a GPU.
    // Throws Error only where the text names no arch of a GPU's.
    PrewarmEntry prewarm(std::string_view arch) const;

    // The name under which errors, the log and jitney cache list show it:
    //     own:saxpy.cu:saxpy<256>(FACTOR=2):8c7e1f...@sm_90a
    // No specialization of Jitney's begins so. The digits are the digest of all its code.
    std::string spec(std::string_view arch) const;

    // A line for jitney prewarm --manifest that carries all of its code.
    std::string manifest(std::string_view arch) const;

    friend bool operator==(const Kernel&, const Kernel&) = default;

  private:
    friend struct KernelAccess;
    explicit Kernel(const detail::OwnKernel* kernel) noexcept : kernel_(kernel) {}

    const detail::OwnKernel* kernel_;
};

// A kernel, and an arch to compile it for.
struct KernelTarget {
    Kernel kernel;
    std::string arch;
};

// As prewarm() of specializations alone: their entries come first, then those of the kernels.
JITNEY_API std::vector<PrewarmEntry> prewarm(std::span<const std::string> specs,
                                             std::span<const KernelTarget> kernels,
                                             const PrewarmOptions& options = {});

}  // namespace jitney
