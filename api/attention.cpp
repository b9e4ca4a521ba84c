#include "jitney/attention.hpp"

#include <fmt/format.h>

#include "api/check.hpp"
#include "api/decision.hpp"
#include "api/last_run.hpp"
#include "api/prepared_attention.hpp"
#include "api/recent_calls.hpp"
#include "jitney/error.hpp"
#include "reference/attention.hpp"

namespace jitney {
namespace {

using policy::KernelId;
using Recent = RecentCalls<PreparedAttention>;

void run_reference(const AttentionArgs& args) {
    reference::Attention call;
    call.q = args.q;
    call.k = args.k;
    call.v = args.v;
    call.out = args.out;
    call.mask = args.mask;
    call.lse = args.lse;
    call.causal = args.causal;
    if (args.scale) call.scale = static_cast<double>(*args.scale);
    call.qo_indptr = args.qo_indptr;
    call.kv_indptr = args.kv_indptr;
    call.kv_lens = args.kv_lens;
    call.req_to_token = args.req_to_token;
    call.req_pool_indices = args.req_pool_indices;
    call.block_table = args.block_table;
    call.kv_page_indptr = args.kv_page_indptr;
    call.kv_page_indices = args.kv_page_indices;
    call.last_page_len = args.last_page_len;
    call.window_left = args.window_left;
    call.window_right = args.window_right;
    if (args.softcap) call.softcap = static_cast<double>(*args.softcap);
    call.alibi_slopes = args.alibi_slopes;
    call.sinks = args.sinks;
    call.new_k = args.new_k;
    call.new_v = args.new_v;
    reference::attention(call);
    note_reference_ran();
}

void run_named(const AttentionArgs& args, KernelId kernel, Stream stream) {
    note_nothing_ran();
    const Decision decision = {Backend::jit, kernel, true};
    if (const PreparedAttention* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const policy::AttentionProblem problem = checks::check(args);
    if (args.q.device.type == DeviceType::cpu) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{} runs on a GPU, and the tensors are in host memory: copy them "
                                "to a GPU, or call jitney::attention",
                                policy::info(kernel).name));
    }
    if (checks::has_no_rows(problem)) return;
    launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
}

}  // namespace

void attention(const AttentionArgs& args, Stream stream) {
    note_nothing_ran();
    const Decision decision = decide(Operation::attention, args.q.device);
    if (const PreparedAttention* recent = Recent::find(args, decision)) {
        return launch(*recent, args, stream);
    }
    const policy::AttentionProblem problem = checks::check(args);
    if (checks::has_no_rows(problem)) return;
    if (decision.backend == Backend::reference) {
        run_reference(args);
    } else {
        launch(Recent::keep(prepare(args, problem, decision, stream)), args, stream);
    }
}

namespace ops {

void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream) {
    run_named(args,
              variant == Variant::mma ? KernelId::attn_prefill_mma : KernelId::attn_prefill_scalar,
              stream);
}

void attn_decode(const AttentionArgs& args, Variant variant, Stream stream) {
    run_named(args,
              variant == Variant::mma ? KernelId::attn_decode_mma : KernelId::attn_decode_scalar,
              stream);
}

}  // namespace ops
}  // namespace jitney
