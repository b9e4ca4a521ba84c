#include "jitney/rotary.hpp"

#include <fmt/format.h>

#include "api/check.hpp"
#include "api/decision.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "jitney/error.hpp"
#include "kernel_sources/rotary/params.h"
#include "reference/rotary.hpp"

namespace jitney {
namespace {

RotaryTensor make_tensor(const Tensor& x, const Tensor& out) noexcept {
    RotaryTensor tensor{};
    tensor.x = x.data;
    tensor.out = out.data;
    tensor.x_batch = x.strides[0];
    tensor.x_row = x.strides[1];
    tensor.x_head = x.strides[2];
    tensor.out_batch = out.strides[0];
    tensor.out_row = out.strides[1];
    tensor.out_head = out.strides[2];
    tensor.heads = static_cast<int>(x.shape[2]);
    return tensor;
}

RotaryParams make_params(const RotaryArgs& args, const policy::RotaryProblem& problem,
                         const policy::RotaryChoice& choice) noexcept {
    RotaryParams params{};
    params.tensors[0] = make_tensor(args.q, args.q_out);
    if (args.k) params.tensors[1] = make_tensor(*args.k, *args.k_out);
    params.cos = static_cast<const float*>(args.cos.data);
    params.sin = static_cast<const float*>(args.sin.data);
    params.table_stride = args.cos.strides[0];
    params.table_rows = static_cast<int>(args.cos.shape[0]);
    if (args.positions) {
        const Tensor& positions = *args.positions;
        const bool per_request = positions.ndim == 2;
        params.positions = positions.data;
        params.positions_batch = per_request && positions.shape[0] != 1 ? positions.strides[0] : 0;
        params.positions_row = positions.strides[per_request ? 1 : 0];
        params.positions_are_64_bit = positions.dtype == DType::int64 ? 1 : 0;
    }
    params.length = static_cast<int>(args.q.shape[1]);
    params.tokens = problem.tokens;
    params.rotary_dim = problem.rotary_dim;
    params.head_dim = problem.in_place ? problem.rotary_dim : problem.head_dim;
    params.items = choice.items;
    params.tokens_a_block = choice.tokens_a_block;
    return params;
}

void run_kernel(const RotaryArgs& args, const policy::RotaryProblem& problem, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.q.device);
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_rotary(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("rotary_emb can't run on {}: {}; use another GPU, or host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    const policy::RotaryChoice choice = policy::choose_rotary(problem, facts);
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    RotaryParams params = make_params(args, problem, choice);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_reference(const RotaryArgs& args) {
    reference::Rotary call;
    call.q = args.q;
    call.q_out = args.q_out;
    call.k = args.k;
    call.k_out = args.k_out;
    call.cos = args.cos;
    call.sin = args.sin;
    call.positions = args.positions;
    call.style = args.style == RotaryStyle::interleaved ? reference::RotaryStyle::interleaved
                                                        : reference::RotaryStyle::half_split;
    reference::rotary(call);
    note_reference_ran();
}

}  // namespace

void rotary_emb(const RotaryArgs& args, Stream stream) {
    note_nothing_ran();
    const policy::RotaryProblem problem = checks::check(args);
    const Decision decision = decide(Operation::rotary, args.q.device);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        run_kernel(args, problem, stream);
    }
}

void ops::rotary_emb(const RotaryArgs& args, Stream stream) {
    note_nothing_ran();
    const policy::RotaryProblem problem = checks::check(args);
    if (args.q.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::rotary_emb runs on a GPU, and the tensors are in host memory: copy them "
                    "to a GPU, or call jitney::rotary_emb");
    }
    if (checks::has_no_rows(problem)) return;
    run_kernel(args, problem, stream);
}

}  // namespace jitney
