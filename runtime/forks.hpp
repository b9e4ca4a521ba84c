// NVRTC in a process that forks. A child has the memory of its parent and only the thread that
// forked: a compile that other threads were in the middle of never goes on there, and the locks
// that it held stay held, so that the child would wait for them without end. It gets an error.
#pragma once

#include <string>

namespace jitney::runtime {

// Exists while NVRTC is at work.
class Compiling {
  public:
    // Throws Error (no_compiler) where the process was forked amid a compile.
    explicit Compiling(const std::string& specialization);
    Compiling(const Compiling&) = delete;
    Compiling& operator=(const Compiling&) = delete;
    ~Compiling();
};

// Whether this process, or one that it comes from, was forked while its parent compiled.
bool forked_amid_compile() noexcept;

// Throws the error that says so, for a kernel that is not to be had for that reason.
[[noreturn]] void refuse_after_fork(const std::string& specialization);

}  // namespace jitney::runtime
