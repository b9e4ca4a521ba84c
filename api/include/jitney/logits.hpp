// A logits function of the caller's: CUDA C++ that attention's kernels apply to each score.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "jitney/error.hpp"
#include "jitney/export.hpp"

namespace jitney {

namespace detail {
struct LogitsRecord;
}

// The text is an expression, or statements that return the new score:
//
//     LogitsFunction capped("30.0f * tanhf(score / 30.0f)");
//     LogitsFunction alibi("score - slopes[head] * abs(place - key)", {"const float* slopes"});
//
// It may use
//     float score   the scaled score (scale * q.k), in natural units
//     int batch     the request
//     int head      the query head
//     int query     the query's number in its request, of q_len
//     int key       the key's number in its request, of kv_len
//     int place     where the query stands among the keys: query + kv_len - q_len
//     int q_len, kv_len
// and up to four parameters of its own, which it declares: pointers to the GPU's memory, float, int
// or long long. Each call gives their values.
//
// What it returns takes the place of the score: before the soft cap and ALiBi, where the call has
// those too, and before all masking. -inf hides a key (though a soft cap behind it would bring it
// back). It is called for keys and queries of the request alone, but may be called for keys that a
// mask, a window or causality hides. The names of jitney's own device functions can be used and are
// no promise; including files is not possible.
//
// CUDA's device functions can be called, and what <math.h> and <float.h> name is there: INFINITY,
// NAN, M_PI, FLT_MAX and so on. What would make different functions of equal texts is refused:
// __DATE__, __FILE__, __LINE__, __has_include and their kin, and the pasting of tokens (##).
//
// A function is compiled into the kernels, once for each specialization, whose text then ends with
// logits=<digest>. Making a LogitsFunction hashes it once; an object is a pointer, and copies and
// objects of the same declarations and text are the same function: whether they were given apart or
// as a file, with LF or CRLF, and whatever blanks stand around the text or within a declaration.
// What was made is kept as long as the process lives, as the kernels are.
class LogitsFunction {
  public:
    LogitsFunction() = default;  // none
    // Throws Error for a text or a declaration that can't be meant; what the compiler thinks of it
    // is told by the first call, in a CompileError whose log names the lines of "logits", and of
    // "logits parameters".
    explicit LogitsFunction(std::string_view text,
                            std::initializer_list<std::string_view> parameters = {})
        : LogitsFunction(text, std::span(parameters.begin(), parameters.size())) {}
    JITNEY_API LogitsFunction(std::string_view text, std::span<const std::string_view> parameters);
    // A file's form of both, as jitney prewarm --logits takes it: lines at the top that begin with
    // `param ` declare the parameters. All lines of errors are the file's (of a function that was
    // made before, in another form, they are those of that).
    JITNEY_API static LogitsFunction from_source(std::string_view source);

    explicit operator bool() const noexcept { return record_ != nullptr; }
    friend bool operator==(const LogitsFunction&, const LogitsFunction&) = default;

    // What the specializations' texts show, as 16 hexadecimal digits; 0 for none.
    JITNEY_API std::uint64_t digest() const noexcept;

  private:
    friend struct LogitsAccess;
    const detail::LogitsRecord* record_ = nullptr;
};

// The value of a parameter: of the type that is declared for it, exactly (`float`: 0.1f, not 0.1).
class LogitsValue {
  public:
    enum class Kind : std::uint8_t { none, pointer, fp32, int32, int64 };

    LogitsValue() = default;
    LogitsValue(const void* pointer)
        : kind_(Kind::pointer), bits_(reinterpret_cast<std::uintptr_t>(pointer)) {}
    LogitsValue(float value) : kind_(Kind::fp32), bits_(std::bit_cast<std::uint32_t>(value)) {}
    LogitsValue(std::int32_t value)
        : kind_(Kind::int32), bits_(static_cast<std::uint32_t>(value)) {}
    LogitsValue(long long value) : kind_(Kind::int64), bits_(static_cast<std::uint64_t>(value)) {}
    // std::int64_t is one of both.
    LogitsValue(long value) : LogitsValue(static_cast<long long>(value)) {}

    Kind kind() const noexcept { return kind_; }
    std::uint64_t bits() const noexcept { return bits_; }

  private:
    Kind kind_ = Kind::none;
    std::uint64_t bits_ = 0;
};

inline constexpr std::size_t kLogitsValues = 4;
using LogitsValues = std::array<LogitsValue, kLogitsValues>;

}  // namespace jitney
