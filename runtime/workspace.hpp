// Scratch memory of a launch, kept from call to call for each stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitney/tensor.hpp"

namespace jitney::runtime {

// Memory for the kernels that are put into the stream while this object lives. Take it, launch,
// let it go: the stream's order keeps the memory valid for the kernels, and the next taker of the
// same stream comes after them. While one thread holds the memory of a stream, another thread that
// wants some for the same stream gets memory of its own for that call. A kernel that may start
// before its predecessor ends (LaunchShape::programmatic_dependent) waits for it before it touches
// them.
class Workspace {
  public:
    Workspace() = default;
    Workspace(Workspace&& other) noexcept;
    Workspace& operator=(Workspace&& other) noexcept;
    ~Workspace();

    // Aligned to 256 bytes; null where no bytes were asked for.
    void* data() const noexcept { return data_; }
    // Zero when it was first given out. A kernel that counts in it leaves zeros behind.
    void* counters() const noexcept { return counters_; }

  private:
    friend Workspace take_workspace(Stream, std::size_t, std::size_t);
    void release() noexcept;

    void* data_ = nullptr;
    void* counters_ = nullptr;
    struct WorkspaceSlot* slot_ = nullptr;  // held until release, or
    std::uint64_t owned_ = 0;               // an allocation of this call alone
    Stream stream_ = nullptr;
};

// Of this stream, in the context that the calling thread's last current_device() found. Allocates
// nothing once a call of that size was made on the stream before; never synchronises. While the
// stream is captured, the memory is allocated and freed within the graph. Throws Error
// (out_of_memory).
Workspace take_workspace(Stream stream, std::size_t bytes, std::size_t counter_bytes = 0);

// Zeros, in the stream's order.
void clear_memory(Stream stream, void* memory, std::size_t bytes);

}  // namespace jitney::runtime
