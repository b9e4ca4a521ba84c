#include "operations/call_memory.hpp"

#include <algorithm>
#include <type_traits>

#include "operations/append_kv/fields.hpp"
#include "operations/attention/fields.hpp"
#include "operations/fp8_gemm/fields.hpp"
#include "operations/fp8_linear/fields.hpp"
#include "operations/fp8_quantize/fields.hpp"
#include "operations/refuse.hpp"
#include "operations/rotary/fields.hpp"

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

namespace {

// A source is looked at with its result.
template <class Memory, class Args>
void add_tensors(Memory& memory, const Args& args) noexcept {
    for_each_tensor(args, [&](const ListedTensor& listed, const Tensor& tensor) {
        if (listed.source != nullptr) {
            memory.updates(listed.source_name, *listed.source, listed.name, tensor);
        } else if (listed.access == Access::written || listed.access == Access::updated) {
            memory.writes(listed.name, tensor);
        } else if (listed.access == Access::read) {
            memory.reads(listed.name, tensor);
        }
    });
}

template <class Args>
const Workspace* workspace_of(const Args& args) noexcept {
    if constexpr (requires { args.workspace; }) {
        return &args.workspace;
    } else {
        return nullptr;
    }
}

template <class Args>
void add(CallMemory& memory, const Args& args) noexcept {
    add_tensors(memory, args);
    if (const Workspace* workspace = workspace_of(args)) memory.writes(*workspace);
}

// The tensors of a call, those that are written first.
class Tensors {
  public:
    void reads(const char*, const Tensor& tensor) noexcept { all_.at(count_++) = &tensor; }
    void writes(const char*, const Tensor& tensor) noexcept {
        all_.at(count_++) = all_[written_];
        all_[written_++] = &tensor;
    }
    void updates(const char* in_name, const Tensor& in, const char* name,
                 const Tensor& out) noexcept {
        if (in.data != out.data) reads(in_name, in);
        writes(name, out);
    }

    std::span<const Tensor* const> all() const noexcept { return {all_.data(), count_}; }
    std::size_t written() const noexcept { return written_; }

  private:
    std::array<const Tensor*, 24> all_{};
    std::size_t count_ = 0;
    std::size_t written_ = 0;
};

// Whose sizes may be others in each run of a plan.
template <class Args>
bool is_sized_anew(const Args& args, const Tensor& tensor) noexcept {
    bool sized_anew = false;
    for_each_tensor(args, [&](const ListedTensor& listed, const Tensor& each) {
        sized_anew |= &each == &tensor && listed.differs != Differs::never;
    });
    return sized_anew;
}

}  // namespace

template <class Args>
bool lies_apart(const Args& args) noexcept {
    CallMemory memory;
    add(memory, args);
    return memory.apart();
}

template <class Args>
void check_memory(const Args& args) {
    CallMemory memory;
    add(memory, args);
    memory.check();
}

template <class Args>
FormMemory<Args>::FormMemory(const Args& args) noexcept {
    Tensors tensors;
    add_tensors(tensors, args);
    written_count_ = tensors.written();
    for (const Tensor* tensor : tensors.all()) {
        const Span span = span_of(*tensor);
        const auto begin = reinterpret_cast<std::uintptr_t>(tensor->data);
        parts_.at(count_++) = {
            reinterpret_cast<const char*>(tensor) - reinterpret_cast<const char*>(&args),
            begin - span.first, span.bytes, is_sized_anew(args, *tensor)};
    }
}

template <class Args>
bool FormMemory<Args>::apart_at_a_glance(const Args& args) const noexcept {
    const auto* const begin = reinterpret_cast<const char*>(&args);
    std::array<Span, kMostParts> spans;
    for (std::size_t i = 0; i < count_; ++i) {
        const auto* const tensor = reinterpret_cast<const Tensor*>(begin + parts_[i].place);
        spans[i] = {reinterpret_cast<std::uintptr_t>(tensor->data) - parts_[i].below,
                    parts_[i].bytes};
        if (parts_[i].sized_anew) spans[i] = span_of(*tensor);
    }
    bool together = false;
    for (std::size_t written = 0; written < written_count_; ++written) {
        for (std::size_t i = written + 1; i < count_; ++i)
            together |= meet(spans[written], spans[i]);
    }
    if (const Workspace* workspace = workspace_of(args)) {
        const Span memory{reinterpret_cast<std::uintptr_t>(workspace->data), workspace->bytes};
        for (std::size_t i = 0; i < count_; ++i)
            together |= meet(memory, spans[i]);
    }
    return !together;
}

template bool lies_apart(const AttentionArgs&) noexcept;
template bool lies_apart(const RotaryArgs&) noexcept;
template bool lies_apart(const AppendKvArgs&) noexcept;
template bool lies_apart(const Fp8QuantizeArgs&) noexcept;
template bool lies_apart(const Fp8GemmArgs&) noexcept;
template bool lies_apart(const Fp8LinearArgs&) noexcept;
template bool lies_apart(const Fp8LinearBackwardArgs&) noexcept;
template void check_memory(const AttentionArgs&);
template void check_memory(const RotaryArgs&);
template void check_memory(const AppendKvArgs&);
template void check_memory(const Fp8QuantizeArgs&);
template void check_memory(const Fp8GemmArgs&);
template void check_memory(const Fp8LinearArgs&);
template void check_memory(const Fp8LinearBackwardArgs&);
template class FormMemory<AttentionArgs>;
template class FormMemory<RotaryArgs>;
template class FormMemory<AppendKvArgs>;
template class FormMemory<Fp8QuantizeArgs>;
template class FormMemory<Fp8GemmArgs>;
template class FormMemory<Fp8LinearArgs>;
template class FormMemory<Fp8LinearBackwardArgs>;

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
