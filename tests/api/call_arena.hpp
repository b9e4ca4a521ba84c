// The memory of calls that are made again and again: every run begins with the same bytes, and what
// it left can be compared as a whole.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "jitney/tensor.hpp"
#include "jitney/workspace.hpp"
#include "tests/support/random.hpp"

namespace jitney::tests {

// Tensors have room around them, so that a launch that was prepared for other strides or sizes, as
// a faulty library would make it, reads zeros there instead of ending the process.
class CallArena {
  public:
    explicit CallArena(std::uint64_t seed);

    // Numbers of a normal distribution, in any floating format, on GPU 0.
    Tensor numbers(DType dtype, std::initializer_list<std::int64_t> shape);
    Tensor integers(DType dtype, std::initializer_list<std::int64_t> shape,
                    const std::vector<std::int64_t>& values);
    Tensor zeros(DType dtype, std::initializer_list<std::int64_t> shape);
    Tensor booleans(std::initializer_list<std::int64_t> shape);
    // Zeros, aligned to 256 bytes.
    Workspace workspace(std::size_t bytes);

    // What it holds now is what each run begins with.
    void keep() { kept_ = bytes_; }  // once it is filled
    void restore() {
        if (!changed_) return;
        set_contents(kept_);
        changed_ = false;
    }
    // Another call's, of this arena.
    void set_contents(const std::vector<std::byte>& contents);
    // Behind a call that may have written.
    const std::vector<std::byte>& take_contents() {
        changed_ = true;
        return bytes_;
    }

  private:
    static constexpr std::size_t kBytes = std::size_t{1} << 20;

    Tensor place(DType dtype, std::initializer_list<std::int64_t> shape);

    std::vector<std::byte> bytes_;
    std::vector<std::byte> kept_;
    std::size_t used_;
    bool changed_ = false;
    Random random_;
};

// An element of a tensor of the arena, by its offset in elements.
double number_at(const Tensor& tensor, std::int64_t offset);

}  // namespace jitney::tests
