#include "jitney/fp8_gemm.hpp"

#include "operations/fp8_gemm/operation.hpp"
#include "operations/path.hpp"
#include "operations/plan.hpp"

namespace jitney {

void fp8_gemm(const Fp8GemmArgs& args, Stream stream) {
    path::run(args, stream);
}

void ops::fp8_gemm(const Fp8GemmArgs& args, Stream stream) {
    path::run_kernel(args, policy::KernelId::fp8_gemm_mma, "ops::fp8_gemm", stream);
}

std::size_t workspace_bytes(const Fp8GemmArgs& args) {
    return path::workspace_bytes(args);
}

Explanation explain(const Fp8GemmArgs& args, std::string_view arch) {
    return path::explain(args, arch);
}

template class JITNEY_API Plan<Fp8GemmArgs>;

}  // namespace jitney
