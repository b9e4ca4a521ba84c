// Memory of a command's tensors, on the host and on a GPU.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitney/gpu.hpp"
#include "jitney/tensor.hpp"

namespace jitney::cli {

// Of a contiguous tensor.
std::size_t bytes_of(const Tensor& tensor);

// Of all of them together, which 64 bits might not count.
double bytes_of(std::span<Tensor* const> tensors);
// For people: "3.5 GB".
std::string text_of_bytes(double bytes);

// A contiguous tensor in host memory that it owns.
class HostTensor {
  public:
    HostTensor(DType dtype, std::span<const std::int64_t> shape);
    HostTensor(HostTensor&&) noexcept = default;
    HostTensor& operator=(HostTensor&&) noexcept = default;
    const Tensor& view() const { return view_; }

  private:
    std::vector<std::byte> storage_;
    Tensor view_;
};

// Where the tensors of one call live while it runs: on a GPU, to which inputs are copied and from
// which outputs are, or where they are already.
class Stage {
  public:
    // No value: the host.
    explicit Stage(std::optional<int> gpu);
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    // The view to call with; the host tensor is contiguous and outlives the stage.
    Tensor input(const Tensor& host);
    // What the call leaves as it was, the host tensor has as well.
    Tensor output(const Tensor& host);
    // Waits for the call to end.
    void wait() const;
    // Brings the outputs back.
    void fetch() const;

  private:
    struct Output {
        void* host;
        std::size_t device;  // index into memory_
    };
    Tensor place(const Tensor& host);

    std::optional<int> gpu_;
    std::optional<GpuScope> scope_;
    std::deque<GpuMemory> memory_;
    std::vector<Output> outputs_;
};

}  // namespace jitney::cli
