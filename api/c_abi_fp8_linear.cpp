// The linear layer on FP8 and its state, from C; and the sizes of the FP8 calls' workspaces.
#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "api/c_abi_tensor.hpp"
#include "api/last_run.hpp"
#include "api/refuse.hpp"
#include "jitney/fp8_linear.hpp"

namespace jitney::c_abi {
namespace {

template <class Args, class Size>
jitney_status workspace_of(const Args* args, size_t* bytes, const Size& size) noexcept {
    return guarded([&] {
        if (bytes == nullptr) checks::refuse("bytes is null: point it to where the size shall go");
        *bytes = size(arguments(args));
    });
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_fp8_state_columns(const jitney_fp8_recipe* recipe, int32_t* columns) {
    return guarded([&] {
        if (recipe == nullptr) checks::refuse("recipe is null: point it to a jitney_fp8_recipe");
        if (columns == nullptr) checks::refuse("columns is null: point it to an int32_t");
        *columns = fp8_state_columns(recipe_of(*recipe));
    });
}

jitney_status jitney_fp8_state_reset(const DLTensor* state, jitney_stream stream) {
    return guarded([&] { fp8_state_reset(required(state, "state"), stream); });
}

jitney_status jitney_fp8_linear(const jitney_fp8_linear_args* args, jitney_stream stream) {
    return guarded([&] {
        note_nothing_ran();
        fp8_linear(arguments(args), stream);
    });
}

jitney_status jitney_fp8_quantize_workspace(const jitney_fp8_quantize_args* args, size_t* bytes) {
    return workspace_of(args, bytes, [](const auto& call) { return workspace_bytes(call); });
}

jitney_status jitney_fp8_gemm_workspace(const jitney_fp8_gemm_args* args, size_t* bytes) {
    return workspace_of(args, bytes, [](const auto& call) { return workspace_bytes(call); });
}

jitney_status jitney_fp8_linear_workspace(const jitney_fp8_linear_args* args, size_t* bytes) {
    return workspace_of(args, bytes, [](const auto& call) { return workspace_bytes(call); });
}

jitney_status jitney_fp8_linear_backward(const jitney_fp8_linear_backward_args* args,
                                         jitney_stream stream) {
    return guarded([&] {
        note_nothing_ran();
        fp8_linear_backward(arguments(args), stream);
    });
}

jitney_status jitney_fp8_linear_backward_workspace(const jitney_fp8_linear_backward_args* args,
                                                   size_t* bytes) {
    return workspace_of(args, bytes, [](const auto& call) { return workspace_bytes(call); });
}

}  // extern "C"
