// A tensor of a test in the emulator's global memory, where a kernel may touch its elements and
// nothing around or between them.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/emulator/machine/memory.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::emulator {

class EmulatedTensor {
  public:
    enum class Use { input, output };

    // `shift` elements lie before the tensor's memory, so that it is less aligned. `usable` says of
    // each element, in row-major order, whether a kernel may touch it; empty: all.
    EmulatedTensor(const tests::HostTensor& tensor, Use use, std::int64_t shift = 0,
                   const std::vector<bool>& usable = {});

    Tensor view() const;
    tests::HostTensor download() const;

  private:
    std::byte* base() const;

    tests::HostTensor tensor_;
    std::int64_t shift_;
    Buffer buffer_;
};

}  // namespace jitney::emulator
