#include "jitney/gated_activation.hpp"

#include "operations/gated_activation/operation.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"

namespace jitney {

void gated_activation(const GatedActivationArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::gated_activation(const GatedActivationArgs& args, Stream stream) {
    path::run_kernel(args, policy::KernelId::gated_activation, "ops::gated_activation", stream);
}

Explanation explain(const GatedActivationArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<GatedActivationArgs>;

}  // namespace jitney
