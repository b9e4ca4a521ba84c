// A rotary call with everything done that its form decides, as attention/prepared.hpp has it.
#pragma once

#include <memory>

#include "jitney/rotary.hpp"
#include "kernel_sources/rotary/params.h"
#include "operations/call_memory.hpp"
#include "operations/decision.hpp"
#include "operations/rotary/choose.hpp"
#include "runtime/kernel.hpp"

namespace jitney {

struct PreparedRotary {
    RotaryArgs args;  // the form; its addresses mean nothing
    checks::FormMemory<RotaryArgs> memory;
    Decision decision;
    policy::RotaryChoice choice;
    const runtime::Kernel* kernel = nullptr;
    RotaryParams params{};  // without addresses
};

// Chooses for the GPU of the current context and loads the kernel. `problem` is what
// checks::check(args) returned, and has rows.
std::unique_ptr<PreparedRotary> prepare(const RotaryArgs& args,
                                        const policy::RotaryProblem& problem,
                                        const Decision& decision, Stream stream);

// `args` has the form of `prepared`.
void launch(const PreparedRotary& prepared, const RotaryArgs& args, Stream stream);

}  // namespace jitney
