// One attention problem, run on the GPU and held against the reference.
#pragma once

#include <string>
#include <vector>

#include "jitney/attention.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/problems.hpp"

namespace jitney::tests {

inline const std::vector<std::string> kAttentionKernels = {
    "attn_decode_scalar",  "attn_decode_mma",  "attn_decode_cluster",
    "attn_prefill_scalar", "attn_prefill_mma", "attn_prefill_wgmma"};

struct AttentionCase {
    AttentionShape shape;
    Layout layout;       // of all tensors, set apart; padding leaves NaN, which nothing may read
    std::string kernel;  // forced by a scope; empty: the policy chooses
    bool lse = true;

    std::string text() const;
};

// The tensors of a problem on the GPU. `out` and `lse` begin poisoned.
struct DeviceProblem {
    explicit DeviceProblem(const AttentionProblem& problem, int device = 0);
    AttentionArgs args(const AttentionShape& shape, bool want_lse = true) const;

    DeviceTensor q;
    DeviceTensor k;
    DeviceTensor v;
    DeviceTensor out;
    DeviceTensor lse;
    std::vector<DeviceTensor> mask;  // one or none
};

// Whether the kernel can run the case on the GPU; always where none is forced.
bool can_run(const AttentionCase& test);
// The same of a call.
bool can_run(const std::string& kernel, const AttentionArgs& args);

// Compiles what the cases need, as many at a time as there are cores, so that the cases that follow
// find it on disk.
void prewarm_cases(const std::vector<AttentionCase>& cases);

// Runs the case and checks out, LSE, what lies around them, and which kernel ran.
void run_case(const AttentionCase& test, Random& random);
// Neighbours that differ in the kernel alone share their data, and one run of the reference.
void run_cases(const std::vector<AttentionCase>& cases);

// Checks `out` and `lse` against what the reference makes of the problem.
void check_against_reference(AttentionProblem& problem, const HostTensor& out,
                             const HostTensor* lse);
// And against the problem's own, which the reference has made already.
void check_results(const AttentionProblem& problem, const HostTensor& out, const HostTensor* lse);

// Bit for bit.
bool is_identical(const HostTensor& a, const HostTensor& b);

}  // namespace jitney::tests
