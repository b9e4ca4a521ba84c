// Which memory the tensors of a call have: what a call writes shares no byte with anything else of
// it, and what it only reads may be shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_linear.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/rotary.hpp"
#include "jitney/workspace.hpp"
#include "operations/overlap.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

// Takes the tensors of a call one after the other, and notes the first pair that shares memory
// where one of them is written. The tensors live as long as this does, and their strides were
// checked.
class CallMemory {
  public:
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

  private:
    struct Part {
        const char* name;
        const Tensor* tensor;
        Span span;
    };

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

template <class Args>
bool lies_apart(const Args& args) noexcept;

// Throws where it does not.
template <class Args>
void check_memory(const Args& args);

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

extern template class FormMemory<AttentionArgs>;
extern template class FormMemory<RotaryArgs>;
extern template class FormMemory<AppendKvArgs>;
extern template class FormMemory<Fp8QuantizeArgs>;
extern template class FormMemory<Fp8GemmArgs>;
extern template class FormMemory<Fp8LinearArgs>;
extern template class FormMemory<Fp8LinearBackwardArgs>;

// Of two tensors.
void check_apart(const Named& written, const Named& other);
// A result that begins where an input of its shape does is that very view.
void check_in_place(const Named& written, const Named& input);

}  // namespace jitney::checks
