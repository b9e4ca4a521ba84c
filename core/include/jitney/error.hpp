// The error type of every call of Jitney.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "jitney/export.hpp"

namespace jitney {

// The values are part of the C ABI: append, never renumber.
enum class ErrorCode : int {
    invalid_argument = 1,  // a shape, stride, dtype, pointer, text or file that can't be meant
    unsupported = 2,       // well-formed, but no kernel (or not the forced one) can do it
    no_device = 3,         // no driver, no GPU, or not the GPU the tensors live on
    no_compiler = 4,       // something has to be compiled and NVRTC can't be found or opened
    compile_failed = 5,    // NVRTC refused the source: CompileError has its log
    not_cached = 6,        // JITNEY_JIT=off and the specialization is in no cache layer
    driver = 7,            // the CUDA driver returned an error
    capture = 8,           // a load or a compile would be needed while the stream is captured
    out_of_memory = 9,     // device memory for a workspace
    io = 10,               // a file could not be read or written
    internal = 11,         // a broken invariant of this library: please report it
};

// what() is one sentence: what was wrong, with the values, and what to do. It is one line of
// printable text, whatever the message holds: control characters of a caller's or a file's text are
// written out (\n, \x1b).
class JITNEY_API Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message);
    ErrorCode code() const noexcept { return code_; }

  private:
    ErrorCode code_;
};

// A compile that failed, with the compiler's own log and the text of the specialization.
class JITNEY_API CompileError : public Error {
  public:
    CompileError(const std::string& message, std::string specialization, std::string log)
        : Error(ErrorCode::compile_failed, message),
          specialization_(std::move(specialization)),
          log_(std::move(log)) {}
    const std::string& specialization() const noexcept { return specialization_; }
    const std::string& log() const noexcept { return log_; }

  private:
    std::string specialization_;
    std::string log_;
};

}  // namespace jitney
