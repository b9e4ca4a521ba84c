// Workspaces of the caller's, from C: how large they have to be, and their first clearing.
#include "jitney/workspace.hpp"

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
namespace {

template <class Args>
jitney_status workspace_of(const Args* args, size_t* bytes) noexcept {
    return guarded([&] {
        if (bytes == nullptr) checks::refuse("bytes is null: point it to where the size shall go");
        *bytes = workspace_bytes(arguments(args));
    });
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_attention_workspace(const jitney_attention_args* args, size_t* bytes) {
    return workspace_of(args, bytes);
}

jitney_status jitney_fp8_quantize_workspace(const jitney_fp8_quantize_args* args, size_t* bytes) {
    return workspace_of(args, bytes);
}

jitney_status jitney_fp8_gemm_workspace(const jitney_fp8_gemm_args* args, size_t* bytes) {
    return workspace_of(args, bytes);
}

jitney_status jitney_fp8_linear_workspace(const jitney_fp8_linear_args* args, size_t* bytes) {
    return workspace_of(args, bytes);
}

jitney_status jitney_fp8_linear_backward_workspace(const jitney_fp8_linear_backward_args* args,
                                                   size_t* bytes) {
    return workspace_of(args, bytes);
}

jitney_status jitney_init_workspace(void* workspace, size_t bytes, int32_t device,
                                    jitney_stream stream) {
    return guarded([&] { init_workspace({workspace, bytes}, {DeviceType::cuda, device}, stream); });
}

}  // extern "C"
