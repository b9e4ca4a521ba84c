// Which memory the tensors of a call have: what a call writes shares no byte with anything else of
// it, and what it only reads may be shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "api/tensor_checks.hpp"
#include "jitney/workspace.hpp"

namespace jitney::checks {

// From the first byte of a tensor's to behind the last; strides may be negative. Zeros where it has
// no data or nothing in it.
struct ByteRange {
    std::int64_t begin;
    std::int64_t end;

    bool meets(const ByteRange& other) const noexcept {
        return begin < other.end && other.begin < end;
    }
};
ByteRange byte_range(const Tensor& tensor) noexcept;

// Whether a byte belongs to both. Tensors that lie in the gaps of each other's rows, such as
// columns of one matrix, do not overlap. The answer is exact, but for rows at several distances
// that would take too long to compare: those overlap.
bool overlap(const Tensor& a, const Tensor& b) noexcept;

[[noreturn]] void refuse_overlap(const Named& written, const Named& other);

// Takes the tensors of a call one after the other, and refuses the first that shares memory with
// another one where one of them is written. The tensors live as long as this does.
class CallMemory {
  public:
    static constexpr std::size_t kMost = 40;

    void reads(const Named& named) { add(named, false); }
    void writes(const Named& named) { add(named, true); }
    // After the tensors.
    void writes(const Workspace& workspace);

  private:
    struct Part {
        const char* name;
        const Tensor* tensor;
        ByteRange bytes;
        bool written;
    };

    void add(const Named& named, bool written);

    std::array<Part, kMost> parts_;
    std::size_t count_ = 0;
    Tensor workspace_;
};

}  // namespace jitney::checks
