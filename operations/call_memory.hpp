// Which memory the tensors of a call have: what a call writes shares no byte with anything else of
// it, and what it only reads may be shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitney/workspace.hpp"
#include "operations/call_fields.hpp"
#include "operations/overlap.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

// Takes the tensors of a call one after the other, and notes the first pair that shares memory
// where one of them is written. The tensors live as long as this does, and their strides were
// checked.
class CallMemory {
  public:
    struct Part {
        const char* name;
        const Tensor* tensor;
        Span span;
    };

    void reads(const char* name, const Tensor& tensor) noexcept;
    void writes(const char* name, const Tensor& tensor) noexcept;
    // In place, where both begin at one address, or apart.
    void updates(const char* in_name, const Tensor& in, const char* name,
                 const Tensor& out) noexcept;
    // After the tensors.
    void writes(const Workspace& workspace) noexcept;

    bool apart() const noexcept { return found_ == Sharing::none; }
    // Throws the sentence where they are not.
    void check() const;

    std::span<const Part> written() const noexcept { return {written_.data(), written_count_}; }
    std::span<const Part> read() const noexcept { return {read_.data(), read_count_}; }

  private:
    void compare(const Part& written, const Part& other) noexcept;

    std::array<Part, 8> written_;
    std::array<Part, 24> read_;
    std::size_t written_count_ = 0;
    std::size_t read_count_ = 0;
    std::optional<Tensor> workspace_;
    Sharing found_ = Sharing::none;
    Part found_written_{};
    Part found_other_{};
};

// A source is looked at with its result.
template <class Args>
void add_tensors(CallMemory& memory, const Args& args) noexcept {
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
void add_memory(CallMemory& memory, const Args& args) noexcept {
    add_tensors(memory, args);
    if (const Workspace* workspace = workspace_of(args)) memory.writes(*workspace);
}

template <class Args>
bool lies_apart(const Args& args) noexcept {
    CallMemory memory;
    add_memory(memory, args);
    return memory.apart();
}

// Throws where it does not.
template <class Args>
void check_memory(const Args& args) {
    CallMemory memory;
    add_memory(memory, args);
    memory.check();
}

// The check for calls of one form, whose tensors have their sizes and strides in common: how far
// they reach is worked out once, and what is left are a few comparisons.
template <class Args>
class FormMemory {
  public:
    FormMemory() = default;
    // Its addresses mean nothing, but where results are in place.
    explicit FormMemory(const Args& args) noexcept;

    bool lies_apart(const Args& args) const noexcept {
        return apart_at_a_glance(args) || checks::lies_apart(args);
    }

  private:
    struct Part {
        std::ptrdiff_t place;  // of the tensor in the arguments
        std::uintptr_t below;  // bytes before its address
        std::uintptr_t bytes;
        bool sized_anew;  // each call has a reach of its own
    };
    static constexpr std::size_t kMostParts = 24;

    bool apart_at_a_glance(const Args& args) const noexcept;

    std::array<Part, kMostParts> parts_{};  // those that are written first
    std::size_t count_ = 0;
    std::size_t written_count_ = 0;
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

template <class Args>
FormMemory<Args>::FormMemory(const Args& args) noexcept {
    CallMemory memory;
    add_tensors(memory, args);
    written_count_ = memory.written().size();
    for (const std::span parts : {memory.written(), memory.read()}) {
        for (const CallMemory::Part& part : parts) {
            const Tensor& tensor = *part.tensor;
            parts_.at(count_++) = {
                reinterpret_cast<const char*>(&tensor) - reinterpret_cast<const char*>(&args),
                reinterpret_cast<std::uintptr_t>(tensor.data) - part.span.first, part.span.bytes,
                is_sized_anew(args, tensor)};
        }
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

// The same of two tensors: throws where they share a byte.
void check_apart(const Named& written, const Named& other);
// A result that begins where an input of its shape does is that very view.
void check_in_place(const Named& written, const Named& input);

}  // namespace jitney::checks
