// Launches a kernel on this machine as the driver would on a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/kernel.hpp"

namespace jitney::emulator {

// A compiled kernel. The arguments are those of cuLaunchKernel: a pointer to each parameter.
struct Kernel {
    const char* name = "";
    void (*call)(void* const* arguments) = nullptr;
    unsigned max_threads = 1024;  // what __launch_bounds__ says
};

namespace detail {

template <auto function, class Signature>
struct Caller;

template <auto function, class... Parameters>
struct Caller<function, void (*)(Parameters...)> {
    static void call(void* const* arguments) {
        spread(arguments, std::index_sequence_for<Parameters...>());
    }

  private:
    template <std::size_t... i>
    static void spread([[maybe_unused]] void* const* arguments, std::index_sequence<i...>) {
        function(*static_cast<const std::remove_const_t<Parameters>*>(arguments[i])...);
    }
};

}  // namespace detail

template <auto function>
constexpr Kernel kernel(const char* name, unsigned max_threads = 1024) {
    return {name, &detail::Caller<function, decltype(function)>::call, max_threads};
}

// In which order blocks begin. Of those in a row each ends before the next begins, so that they
// arrive in that order at what they have in common.
enum class BlockOrder { shuffled, ascending, descending };

struct Options {
    std::uint64_t seed = 0;  // of the order of threads and blocks
    unsigned workers = 0;    // OS threads; 0: as JITNEY_EMULATOR_WORKERS says, else one
    unsigned resident = 3;   // blocks that a worker has under way at a time
    BlockOrder order = BlockOrder::shuffled;
    // Of a grid too large to run, the blocks that do (or the clusters, where it has them), by their
    // numbers; empty: all.
    std::span<const std::uint64_t> only = {};
};

// Runs all blocks. Throws Fault where the kernel or the launch does what a GPU would not forgive.
// With one worker everything repeats exactly for the same seed.
void launch(const Kernel& kernel, const runtime::LaunchShape& shape, void* const* arguments,
            const Options& options);

}  // namespace jitney::emulator
