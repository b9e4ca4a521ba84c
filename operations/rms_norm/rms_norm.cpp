#include "jitney/rms_norm.hpp"

#include "operations/path.hpp"
#include "operations/plan.hpp"
#include "operations/rms_norm/operation.hpp"

namespace jitney {

void rms_norm(const RmsNormArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::rms_norm(const RmsNormArgs& args, Stream stream) {
    path::run_kernel(args, policy::KernelId::rms_norm, "ops::rms_norm", stream);
}

Explanation explain(const RmsNormArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<RmsNormArgs>;

}  // namespace jitney
