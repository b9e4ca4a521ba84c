#include "api/call_memory.hpp"

#include <algorithm>
#include <numeric>

#include "api/refuse.hpp"

namespace jitney::checks {
namespace {

// Offsets of 0, bytes, 2 bytes, ... count * bytes.
struct Steps {
    std::int64_t bytes;
    std::int64_t count;
};

// The smallest first. Those of one size are one.
class StepList {
  public:
    std::size_t size() const { return size_; }
    const Steps& operator[](std::size_t i) const { return all_[i]; }

    void add(const Steps& steps) {
        std::size_t at = size_;
        while (at > 0 && all_[at - 1].bytes >= steps.bytes)
            --at;
        if (at < size_ && all_[at].bytes == steps.bytes) {
            all_[at].count += steps.count;
            return;
        }
        for (std::size_t i = size_++; i > at; --i)
            all_[i] = all_[i - 1];
        all_[at] = steps;
    }

  private:
    std::array<Steps, std::size_t{2} * Tensor::max_dims> all_{};
    std::size_t size_ = 0;
};

// A tensor as pieces of `width` bytes without a gap: they begin at `first` and any sum of steps.
struct Pieces {
    std::int64_t first;
    std::int64_t last;
    std::int64_t width;
    StepList steps;

    explicit Pieces(const Tensor& tensor)
        : first(byte_range(tensor).begin), last(first), width(size_of(tensor.dtype)) {
        StepList all;
        for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i) {
            const std::int64_t bytes = tensor.strides[i] * size_of(tensor.dtype);
            if (tensor.shape[i] > 1 && bytes != 0)
                all.add({bytes < 0 ? -bytes : bytes, tensor.shape[i] - 1});
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::int64_t reach = all[i].bytes * all[i].count;
            if (all[i].bytes <= width) {
                width += reach;
            } else {
                steps.add(all[i]);
                last += reach;
            }
        }
    }
};

// Whether a sum of steps lies in an interval.
class Sums {
  public:
    explicit Sums(const StepList& steps) : steps_(steps) {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            most_[i + 1] = most_[i] + steps_[i].bytes * steps_[i].count;
            unit_ = std::gcd(unit_, steps_[i].bytes);
        }
    }

    bool reach(std::int64_t low, std::int64_t high) {
        // All sums are multiples of the unit.
        if (unit_ != 0 && low > 0 && (low + unit_ - 1) / unit_ * unit_ > high) return false;
        return reach(steps_.size(), low, high);
    }

  private:
    static constexpr int kTries = 1 << 12;

    // With the first `left` kinds of steps, the larger ones first: of each there are few numbers
    // that the smaller ones can make up for.
    bool reach(std::size_t left, std::int64_t low, std::int64_t high) {
        if (high < 0 || low > most_[left]) return false;
        if (low <= 0 || ++tries_ > kTries) return true;
        const Steps& steps = steps_[left - 1];
        const std::int64_t missing = low - most_[left - 1];
        const std::int64_t first = missing <= 0 ? 0 : (missing - 1) / steps.bytes + 1;
        const std::int64_t last = std::min(steps.count, high / steps.bytes);
        for (std::int64_t i = first; i <= last; ++i) {
            if (reach(left - 1, low - i * steps.bytes, high - i * steps.bytes)) return true;
        }
        return false;
    }

    const StepList& steps_;
    std::array<std::int64_t, std::size_t{2} * Tensor::max_dims + 1> most_{};
    std::int64_t unit_ = 0;
    int tries_ = 0;
};

bool meet_in_pieces(const Tensor& a, const Tensor& b) noexcept {
    const Pieces one(a);
    const Pieces other(b);
    // Other's pieces lie behind one's by so much at least, and by any sum of steps more.
    const std::int64_t least = other.first - one.last;
    StepList steps = one.steps;
    for (std::size_t i = 0; i < other.steps.size(); ++i)
        steps.add(other.steps[i]);
    return Sums(steps).reach(1 - other.width - least, one.width - 1 - least);
}

}  // namespace

ByteRange byte_range(const Tensor& tensor) noexcept {
    if (tensor.data == nullptr || is_empty(tensor)) return {0, 0};
    const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
    std::int64_t before = 0;
    std::int64_t behind = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i) {
        const std::int64_t reach = tensor.strides[i] * (tensor.shape[i] - 1);
        (reach < 0 ? before : behind) += reach;
    }
    const std::int64_t size = size_of(tensor.dtype);
    return {begin + before * size, begin + behind * size};
}

bool overlap(const Tensor& a, const Tensor& b) noexcept {
    return byte_range(a).meets(byte_range(b)) && meet_in_pieces(a, b);
}

void refuse_overlap(const Named& written, const Named& other) {
    if (written.tensor.data == other.tensor.data) {
        refuse("{} begins where {} does, at {}, and may not overlap it: give it memory of its own",
               written.name, other.name, fmt::ptr(written.tensor.data));
    }
    const ByteRange own = byte_range(written.tensor);
    const ByteRange others = byte_range(other.tensor);
    refuse(
        "{} overlaps {}: the first lies from {:#x} to {:#x}, the other from {:#x} to {:#x}; give "
        "it memory of its own",
        written.name, other.name, own.begin, own.end, others.begin, others.end);
}

void CallMemory::add(const Named& named, bool written) {
    const Part part{named.name, &named.tensor, byte_range(named.tensor), written};
    for (std::size_t i = 0; i < count_; ++i) {
        const Part& before = parts_[i];
        if (!(written || before.written) || !part.bytes.meets(before.bytes)) continue;
        if (!meet_in_pieces(named.tensor, *before.tensor)) continue;
        const Named other{before.name, *before.tensor, ""};
        refuse_overlap(written ? named : other, written ? other : named);
    }
    if (part.bytes.begin != part.bytes.end) parts_.at(count_++) = part;
}

void CallMemory::writes(const Workspace& workspace) {
    if (workspace.data == nullptr || workspace.bytes == 0) return;
    workspace_.data = workspace.data;
    workspace_.dtype = DType::boolean;
    workspace_.ndim = 1;
    workspace_.shape[0] =
        static_cast<std::int64_t>(std::min(workspace.bytes, std::size_t{1} << 57));
    workspace_.strides[0] = 1;
    add({"the workspace", workspace_, "bytes"}, true);
}

}  // namespace jitney::checks
