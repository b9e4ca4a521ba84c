// Workspaces of the caller's, from C: their first clearing.
#include "jitney/workspace.hpp"

#include "api/c_abi_error.hpp"

extern "C" {

jitney_status jitney_init_workspace(void* workspace, size_t bytes, int32_t device,
                                    jitney_stream stream) {
    using namespace jitney;
    return c_abi::guarded([&] {
        init_workspace({workspace, bytes}, {DeviceType::cuda, device}, stream);
    });
}

}  // extern "C"
