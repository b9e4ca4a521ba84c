#include "operations/call_memory.hpp"

#include <algorithm>

#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

[[noreturn]] void refuse_overlap(const Named& written, const Named& other, Sharing found) {
    if (written.tensor.data == other.tensor.data) {
        refuse("{} begins where {} does, at {}, and may not overlap it: give it memory of its own",
               written.name, other.name, fmt::ptr(written.tensor.data));
    }
    if (found == Sharing::untold) {
        refuse(
            "{} is written, and lies too entangled with {} to tell whether they overlap: give it "
            "memory of its own",
            written.name, other.name);
    }
    const Span own = span_of(written.tensor);
    const Span others = span_of(other.tensor);
    refuse(
        "{} overlaps {}: the first lies from {:#x} to {:#x}, the other from {:#x} "
        "to {:#x}; give it memory of its own",
        written.name, other.name, own.first, own.first + own.bytes, others.first,
        others.first + others.bytes);
}

}  // namespace

void CallMemory::compare(const Part& written, const Part& other) noexcept {
    if (!meet(written.span, other.span) || !apart()) return;
    found_ = shared(*written.tensor, *other.tensor);
    if (apart()) return;
    found_written_ = written;
    found_other_ = other;
}

void CallMemory::reads(const char* name, const Tensor& tensor) noexcept {
    const Part part{name, &tensor, span_of(tensor)};
    for (std::size_t i = 0; i < written_count_; ++i)
        compare(written_[i], part);
    read_.at(read_count_++) = part;
}

void CallMemory::writes(const char* name, const Tensor& tensor) noexcept {
    const Part part{name, &tensor, span_of(tensor)};
    for (std::size_t i = 0; i < read_count_; ++i)
        compare(part, read_[i]);
    for (std::size_t i = 0; i < written_count_; ++i)
        compare(part, written_[i]);
    written_.at(written_count_++) = part;
}

void CallMemory::updates(const char* in_name, const Tensor& in, const char* name,
                         const Tensor& out) noexcept {
    if (in.data != out.data) reads(in_name, in);
    writes(name, out);
}

void CallMemory::writes(const Workspace& workspace) noexcept {
    if (workspace.data == nullptr || workspace.bytes == 0) return;
    constexpr std::size_t most = std::size_t{1} << 57;
    Tensor& bytes = workspace_.emplace();
    bytes.data = workspace.data;
    bytes.dtype = DType::boolean;
    bytes.ndim = 1;
    bytes.shape[0] = static_cast<std::int64_t>(std::min(workspace.bytes, most));
    bytes.strides[0] = 1;
    writes("the workspace", bytes);
}

void CallMemory::check() const {
    if (apart()) return;
    refuse_overlap({found_written_.name, *found_written_.tensor, ""},
                   {found_other_.name, *found_other_.tensor, ""}, found_);
}

void check_apart(const Named& written, const Named& other) {
    const Sharing found = shared(written.tensor, other.tensor);
    if (found != Sharing::none) refuse_overlap(written, other, found);
}

void check_in_place(const Named& written, const Named& input) {
    const Tensor& out = written.tensor;
    const Tensor& in = input.tensor;
    if (out.data != in.data || out.data == nullptr || is_empty(out)) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(out.ndim); ++i) {
        if (out.shape[i] <= 1 || out.strides[i] == in.strides[i]) continue;
        refuse(
            "{} begins where {} does, and the strides of their dimension {} are {} and {}: make "
            "them equal, to work in place, or give {} memory of its own",
            written.name, input.name, i, out.strides[i], in.strides[i], written.name);
    }
}

}  // namespace jitney::checks
