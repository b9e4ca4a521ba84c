// Compiles one specialization with NVRTC, in this process. Safe to call from many threads at once.
#pragma once

#include <string>
#include <string_view>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "runtime/kernel.hpp"

namespace jitney::runtime {

struct CompiledKernel {
    cache::Entry entry;  // a cubin; PTX where NVRTC does not know the arch yet
    std::string log;     // warnings; empty where there are none
    double milliseconds = 0;
};

// What ptxas says of the kernel. Zeros where the payload is PTX.
struct CompileReport {
    int registers = 0;  // a thread
    int stack_bytes = 0;
    int spill_store_bytes = 0;
    int spill_load_bytes = 0;
    int static_shared_bytes = 0;
    int barriers = 0;
};

// Throws CompileError with NVRTC's log and the specialization, or Error (no_compiler). To
// make a report, ptxas is asked to be verbose: the payload then holds a note of that option, and
// the same instructions.
CompiledKernel compile(const KernelSource& source, CompileReport* report = nullptr);

// What the kernel is known by in the cache: the specialization, every source text, the options.
// Equal on every machine.
cache::Key key_of(const KernelSource& source);

// The report within ptxas remarks of the kernel.
CompileReport parse_report(std::string_view log, std::string_view lowered_name);

}  // namespace jitney::runtime
