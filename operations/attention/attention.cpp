#include "jitney/attention.hpp"

#include <array>

#include "operations/attention/operation.hpp"
#include "operations/check_enum.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"
#include "operations/refuse.hpp"

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

void check_variant(Variant variant) {
    checks::check_enum<Variant>(
        "variant", variant,
        {{Variant::scalar, "scalar"}, {Variant::mma, "mma"}, {Variant::wgmma, "wgmma"}});
}

void run_kernel(const AttentionArgs& args, KernelId kernel, Stream stream) {
    path::run_kernel(args, kernel, policy::info(kernel).name, stream);
}

}  // namespace

void attn_prefill(const AttentionArgs& args, Variant variant, Stream stream) {
    const StartedCall started;
    check_variant(variant);
    constexpr std::array kKernels = {KernelId::attn_prefill_scalar, KernelId::attn_prefill_mma,
                                     KernelId::attn_prefill_wgmma};
    run_kernel(args, kKernels[static_cast<std::size_t>(variant)], stream);
}

void attn_decode(const AttentionArgs& args, Variant variant, Stream stream) {
    const StartedCall started;
    check_variant(variant);
    if (variant == Variant::wgmma) {
        checks::refuse(
            "there is no attn_decode of the variant wgmma: ask for mma or scalar, or call "
            "attn_prefill");
    }
    run_kernel(args,
               variant == Variant::mma ? KernelId::attn_decode_mma : KernelId::attn_decode_scalar,
               stream);
}

}  // namespace ops
template class JITNEY_API Plan<AttentionArgs>;

}  // namespace jitney
