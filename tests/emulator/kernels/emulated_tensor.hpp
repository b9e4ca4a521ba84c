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

    // How its elements lie.
    enum class Spread {
        near,   // as those of the host's tensor
        far,    // the last along every dimension but the innermost is more than 2^32 elements from
                // the first, in address space that is empty between them
        alone,  // as those of the host's tensor, behind terabytes of empty address space: it may be
                // the end of a tensor that begins there
    };

    // `shift` elements lie before the tensor's memory, so that it is less aligned. `usable` says of
    // each element, in row-major order, whether a kernel may touch it; empty: all.
    EmulatedTensor(const tests::HostTensor& tensor, Use use, std::int64_t shift = 0,
                   const std::vector<bool>& usable = {}, Spread spread = Spread::near);

    Tensor view() const;
    tests::HostTensor download() const;
    // What the host's tensor would hold after that, padding and all.
    std::vector<std::byte> bits() const;

  private:
    // Copies all elements: to the emulator's memory, or from there.
    void upload();

    tests::HostTensor tensor_;
    std::int64_t shift_;  // in bytes
    Spread spread_;
    Tensor layout_;  // of the emulated tensor, without its address
    Buffer buffer_;
};

}  // namespace jitney::emulator
