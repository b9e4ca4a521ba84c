// The launches of the FP8 calls, in two steps. Making one of these objects chooses and loads its
// kernels, and refuses what can't run; run() does nothing but launch. So a call of several launches
// makes them all, and takes the memory that they need, before it runs the first: where it throws,
// nothing was launched. In between addresses may be filled in that were null, and counted as
// aligned.
#pragma once

#include "kernel_sources/fp8/update_params.h"
#include "operations/check.hpp"
#include "operations/fp8_linear/column_sums.hpp"
#include "operations/fp8_linear/update.hpp"
#include "operations/own_workspace.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel.hpp"

namespace jitney {

// What launches need that run one after the other.
inline ScratchBytes larger(const ScratchBytes& a, const ScratchBytes& b) noexcept {
    return {a.counters > b.counters ? a.counters : b.counters, a.data > b.data ? a.data : b.data};
}

// Whether no kernel is launched. For an empty x the driver writes what is asked for; only the
// inverse of a multiplier that is given has to be computed on the device.
bool launches_nothing(const Fp8QuantizeArgs& args,
                      const policy::Fp8QuantizeProblem& problem) noexcept;

ScratchBytes needed(const Fp8QuantizeArgs& args,
                    const policy::Fp8QuantizeProblem& problem) noexcept;

// Where scaling is dynamic, two.
class Fp8QuantizeLaunches {
  public:
    Fp8QuantizeLaunches(const Fp8QuantizeArgs& args, const policy::Fp8QuantizeProblem& problem,
                        Stream stream);

    const ScratchBytes& needs() const noexcept { return needs_; }
    // `state`: as of Fp8QuantizeParams.
    void run(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call,
             const Scratch& scratch, Stream stream, float* state = nullptr) const;

  private:
    ScratchBytes needs_;
    policy::Fp8QuantizeChoice amax_;  // ahead of the codes
    policy::Fp8QuantizeChoice codes_;
    const runtime::Kernel* amax_kernel_ = nullptr;
    const runtime::Kernel* codes_kernel_ = nullptr;
};

// The same on the host.
void quantize_on_host(const Fp8QuantizeArgs& args, const checks::Fp8QuantizeCall& call,
                      float* state = nullptr);

inline ScratchBytes bytes_of(const policy::Fp8GemmWorkspace& needed) noexcept {
    return {needed.counter_bytes, needed.partial_bytes};
}

// Wherever the operands will lie.
ScratchBytes needed(const policy::Fp8GemmProblem& problem, const policy::DeviceFacts& facts);

// None for an empty product.
class Fp8GemmLaunch {
  public:
    Fp8GemmLaunch(const policy::Fp8GemmProblem& problem, const Device& device, Stream stream);

    ScratchBytes needs() const noexcept { return bytes_of(choice_.workspace); }
    void run(const Fp8GemmArgs& args, const Scratch& scratch, Stream stream) const;

  private:
    policy::Fp8GemmProblem problem_;
    policy::Fp8GemmChoice choice_;
    const runtime::Kernel* kernel_ = nullptr;
};

// Notes scales and makes multipliers: fp8/update.cuh says which.
class Fp8UpdateLaunch {
  public:
    Fp8UpdateLaunch(const Device& device, Stream stream);

    void run(const Fp8UpdateParams& params, Stream stream) const;

  private:
    policy::Fp8UpdateChoice choice_;
    const runtime::Kernel* kernel_ = nullptr;
};

inline ScratchBytes bytes_of(const policy::ColumnSumsChoice& choice) noexcept {
    return {choice.counter_bytes, choice.part_bytes};
}

policy::ColumnSumsProblem sums_problem(const Tensor& x, const Tensor& sums);
ScratchBytes needed(const Tensor& x, const Tensor& sums, const policy::DeviceFacts& facts);

// out[col] is the sum of the column of x, [rows, cols]; none where there are no columns.
class ColumnSumsLaunch {
  public:
    ColumnSumsLaunch(const Tensor& x, const Tensor& out, Stream stream);

    ScratchBytes needs() const noexcept { return bytes_of(choice_); }
    void run(const Tensor& x, const Tensor& out, const Scratch& scratch, Stream stream) const;

  private:
    policy::ColumnSumsChoice choice_;
    const runtime::Kernel* kernel_ = nullptr;
};

}  // namespace jitney
