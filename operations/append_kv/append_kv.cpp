#include "jitney/append_kv.hpp"

#include "operations/append_kv/operation.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"

namespace jitney {

void append_kv(const AppendKvArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::append_kv(const AppendKvArgs& args, Stream stream) {
    path::run_kernel(args, policy::KernelId::append_kv, "ops::append_kv", stream);
}

Explanation explain(const AppendKvArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<AppendKvArgs>;

}  // namespace jitney
