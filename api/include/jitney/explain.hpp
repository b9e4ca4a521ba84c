// Which kernel a call would run, and why not the others: the policy's answer, without running it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/attention.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/rotary.hpp"

namespace jitney {

struct ExplainedCandidate {
    std::string kernel;
    bool accepted = false;
    std::string reason;  // "head_dim 100 is not a multiple of 8"; empty where it was accepted
};

struct Explanation {
    std::string arch;    // "sm_90a"
    std::string chosen;  // a specialization's text; empty where nothing can run, or nothing has to
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    int shared_bytes = 0;             // dynamic, a block
    int splits = 1;                   // blocks that divide the keys (fp8_gemm: k) of a tile
    bool batch_invariant = false;     // then each request's keys are divided for itself, into
    int split_keys = 0;               // parts of at least so many keys; 0 where nothing is divided
    std::size_t workspace_bytes = 0;  // as workspace_bytes() says: device memory beside the tensors
    std::vector<std::string> before;  // specializations that are launched before the chosen one
    // In the order of preference. Empty where nothing has to be computed.
    std::vector<ExplainedCandidate> candidates;
};

// Of a call of several launches, such as those of fp8_linear.hpp.
struct ExplainedLaunch {
    std::string spec;
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    int shared_bytes = 0;             // dynamic, a block
    int splits = 1;                   // fp8_gemm: of k; column_sums: of the rows
    std::size_t workspace_bytes = 0;  // what it would need for itself alone
};

struct ExplainedLaunches {
    std::string arch;
    std::vector<ExplainedLaunch>
        launches;                     // in their order; empty where nothing can run, or has to
    std::size_t workspace_bytes = 0;  // of the call: codes of its own, and what launches share
    // Those that not every GPU or shape has, each once, with the first reason why not.
    std::vector<ExplainedCandidate> candidates;
};

// The arguments are those of the call, and checked as there, but their pointers may be null: then
// they count as aligned. `arch` ("sm_80", "sm_90a") stands for a common GPU of that architecture,
// on any machine (Hopper is sm_90a); where it is empty, it is the GPU that the tensors name. A
// Scope or JITNEY_FORCE that names a kernel counts. Throws Error for arguments or an arch that
// can't be meant, and where there is no such GPU.
JITNEY_API Explanation explain(const AttentionArgs& args, std::string_view arch = {});
JITNEY_API Explanation explain(const RotaryArgs& args, std::string_view arch = {});
JITNEY_API Explanation explain(const Fp8QuantizeArgs& args, std::string_view arch = {});
JITNEY_API Explanation explain(const Fp8GemmArgs& args, std::string_view arch = {});

}  // namespace jitney
