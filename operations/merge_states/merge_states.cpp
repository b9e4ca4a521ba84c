#include "jitney/merge_states.hpp"

#include "operations/merge_states/operation.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"

namespace jitney {

void merge_states(const MergeStatesArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::merge_states(const MergeStatesArgs& args, Stream stream) {
    path::run_kernel(args, policy::KernelId::attn_merge_states, "ops::merge_states", stream);
}

Explanation explain(const MergeStatesArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<MergeStatesArgs>;

}  // namespace jitney
