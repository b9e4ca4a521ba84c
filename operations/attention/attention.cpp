#include "jitney/attention.hpp"

#include "operations/attention/operation.hpp"
#include "operations/check_enum.hpp"
#include "operations/path.hpp"

namespace jitney {

void attention(const AttentionArgs& args, Stream stream) {
    path::run(args, stream);
}

std::size_t workspace_bytes(const AttentionArgs& args) {
    return path::workspace_bytes(args);
}

Explanation explain(const AttentionArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

namespace ops {
namespace {

using policy::KernelId;

void run_variant(const AttentionArgs& args, Variant variant, KernelId scalar, KernelId mma,
                 Stream stream) {
    const StartedCall started;
    checks::check_enum<Variant>("variant", variant,
                                {{Variant::scalar, "scalar"}, {Variant::mma, "mma"}});
    const KernelId kernel = variant == Variant::mma ? mma : scalar;
    path::run_kernel(args, kernel, policy::info(kernel).name, stream);
}

}  // namespace

void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream) {
    run_variant(args, variant, KernelId::attn_prefill_scalar, KernelId::attn_prefill_mma, stream);
}

void attn_decode(const AttentionArgs& args, Variant variant, Stream stream) {
    run_variant(args, variant, KernelId::attn_decode_scalar, KernelId::attn_decode_mma, stream);
}

}  // namespace ops
}  // namespace jitney
