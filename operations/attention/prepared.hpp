// An attention call with everything done that its form decides: checked, chosen, loaded. What is
// left is to put the addresses in and launch.
#pragma once

#include <memory>
#include <vector>

#include "jitney/attention.hpp"
#include "kernel_sources/attention/params.h"
#include "kernel_sources/attention/work_map.h"
#include "operations/attention/choose.hpp"
#include "operations/call_memory.hpp"
#include "operations/decision.hpp"
#include "runtime/kernel.hpp"

namespace jitney {

struct PreparedAttention {
    AttentionArgs args;  // the form; its addresses mean nothing
    checks::FormMemory<AttentionArgs> memory;
    std::vector<int> qo_indptr_host;  // what args.qo_indptr_host shows
    Decision decision;
    policy::AttentionChoice choice;
    const runtime::Kernel* kernel = nullptr;
    const runtime::Kernel* map_kernel = nullptr;   // packed queries
    const runtime::Kernel* mask_kernel = nullptr;  // a mask that is read as bits
    AttentionParams params{};                      // without addresses
    WorkMapParams map_params{};

    PreparedAttention() = default;
    PreparedAttention(const PreparedAttention&) = delete;
    PreparedAttention& operator=(const PreparedAttention&) = delete;
};

// What runs the problem: the named kernel, or an error where that is strict; else the first that
// can.
policy::AttentionChoice choose(const policy::AttentionProblem& problem,
                               const policy::DeviceFacts& facts, const Decision& decision);

// Chooses for the GPU of the current context and loads the kernels. `problem` is what
// checks::check(args) returned, and has rows.
std::unique_ptr<PreparedAttention> prepare(const AttentionArgs& args,
                                           const policy::AttentionProblem& problem,
                                           const Decision& decision, Stream stream);

// `args` has the form of `prepared`.
void launch(const PreparedAttention& prepared, const AttentionArgs& args, Stream stream);

}  // namespace jitney
