#include "jitney/rotary.hpp"

#include "operations/path.hpp"
#include "operations/plan.hpp"
#include "operations/rotary/operation.hpp"

namespace jitney {

void rotary_emb(const RotaryArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::rotary_emb(const RotaryArgs& args, Stream stream) {
    path::run_kernel(args, policy::KernelId::rotary_emb, "ops::rotary_emb", stream);
}

Explanation explain(const RotaryArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<RotaryArgs>;

}  // namespace jitney
