// The argument checks of every operation: the calls of both levels, explain and the command line
// all come through here. What comes back is the problem as the policy sees it.
#pragma once

#include <optional>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/fp8_gemm.hpp"
#include "jitney/fp8_quantize.hpp"
#include "jitney/gated_activation.hpp"
#include "jitney/merge_states.hpp"
#include "jitney/rms_norm.hpp"
#include "jitney/rotary.hpp"
#include "operations/append_kv/choose.hpp"
#include "operations/attention/choose.hpp"
#include "operations/fp8_gemm/choose.hpp"
#include "operations/fp8_quantize/choose.hpp"
#include "operations/gated_activation/choose.hpp"
#include "operations/merge_states/choose.hpp"
#include "operations/rms_norm/choose.hpp"
#include "operations/rotary/choose.hpp"
#include "operations/tensor_checks.hpp"

namespace jitney::checks {

policy::AttentionProblem check(const AttentionArgs& args, Data data = Data::present);
policy::RotaryProblem check(const RotaryArgs& args, Data data = Data::present);
policy::MergeStatesProblem check(const MergeStatesArgs& args, Data data = Data::present);
policy::RmsNormProblem check(const RmsNormArgs& args, Data data = Data::present);
policy::GatedActivationProblem check(const GatedActivationArgs& args, Data data = Data::present);
policy::AppendKvProblem check(const AppendKvArgs& args, Data data = Data::present);
// What m, n and k may be: the kernel counts in 32 bits, and looks a tile past the last.
inline constexpr std::int64_t kMostOfFp8Gemm = 0x7fff0000;
policy::Fp8GemmProblem check(const Fp8GemmArgs& args, Data data = Data::present);

policy::Fp8QuantizeProblem check(const Fp8QuantizeArgs& args, Data data = Data::present);

// No rows: nothing to compute, and no geometry to ask the policy for.
inline bool has_no_rows(const policy::AttentionProblem& problem) noexcept {
    const bool none_known = !problem.qo_indptr.empty() &&
                            problem.qo_indptr.ends.front() == problem.qo_indptr.ends.back();
    return problem.batch == 0 || problem.q_len == 0 || problem.q_heads == 0 || none_known;
}
inline bool has_no_rows(const policy::RotaryProblem& problem) noexcept {
    return problem.tokens == 0 || problem.heads == 0;
}
inline bool has_no_rows(const policy::MergeStatesProblem& problem) noexcept {
    return problem.rows == 0;
}
inline bool has_no_rows(const policy::AppendKvProblem& problem) noexcept {
    return problem.tokens == 0 || problem.batch == 0 || problem.kv_heads + problem.q_heads == 0;
}

// Each tensor is rotated in place: what lies past rotary_dim is not touched.
bool is_in_place(const RotaryArgs& args) noexcept;

}  // namespace jitney::checks
