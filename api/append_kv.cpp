#include "jitney/append_kv.hpp"

#include <fmt/format.h>

#include "api/append_kv_params.hpp"
#include "api/check.hpp"
#include "api/decision.hpp"
#include "api/kernel_launch.hpp"
#include "api/last_run.hpp"
#include "reference/append_kv.hpp"

namespace jitney {
namespace {

void run_kernel(const AppendKvArgs& args, const policy::AppendKvProblem& problem, Stream stream) {
    const runtime::DeviceInfo& device = enter_device(args.new_k.device);
    const policy::DeviceFacts facts = facts_of(device);
    const policy::Candidate candidate = policy::rank_append_kv(problem, facts);
    if (!candidate.accepted()) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("append_kv can't run on {}: {}; append fewer rows at a time, or "
                                "use host tensors",
                                device.name, policy::reason_text(candidate)));
    }
    const policy::AppendKvChoice choice = policy::choose_append_kv(problem, facts);
    const runtime::Kernel& kernel = load_kernel(choice.spec, device, stream);
    AppendKvParams params = make_params(args, problem, choice);
    launch_kernel(kernel, choice.geometry, &params, stream);
    note_ran(choice.spec);
}

void run_reference(const AppendKvArgs& args) {
    reference::AppendKv call;
    call.new_k = args.new_k;
    call.new_v = args.new_v;
    call.new_indptr = args.new_indptr;
    call.k = args.k;
    call.v = args.v;
    call.kv_lens = args.kv_lens;
    call.kv_indptr = args.kv_indptr;
    call.req_to_token = args.req_to_token;
    call.req_pool_indices = args.req_pool_indices;
    call.block_table = args.block_table;
    call.kv_page_indptr = args.kv_page_indptr;
    call.kv_page_indices = args.kv_page_indices;
    call.last_page_len = args.last_page_len;
    call.cos = args.cos;
    call.sin = args.sin;
    call.positions = args.positions;
    call.style = args.style == RotaryStyle::interleaved ? reference::RotaryStyle::interleaved
                                                        : reference::RotaryStyle::half_split;
    call.q = args.q;
    call.q_out = args.q_out;
    reference::append_kv(call);
    note_reference_ran();
}

}  // namespace

void append_kv(const AppendKvArgs& args, Stream stream) {
    note_nothing_ran();
    const policy::AppendKvProblem problem = checks::check(args);
    const Decision decision = decide(Operation::append_kv, args.new_k.device);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        run_kernel(args, problem, stream);
    }
}

void ops::append_kv(const AppendKvArgs& args, Stream stream) {
    note_nothing_ran();
    const policy::AppendKvProblem problem = checks::check(args);
    if (args.new_k.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    "ops::append_kv runs on a GPU, and the tensors are in host memory: copy them "
                    "to a GPU, or call jitney::append_kv");
    }
    if (checks::has_no_rows(problem)) return;
    run_kernel(args, problem, stream);
}

}  // namespace jitney
