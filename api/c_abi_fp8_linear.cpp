// The linear layer on FP8 and its state, from C.
#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "api/c_abi_tensor.hpp"
#include "jitney/fp8_linear.hpp"
#include "operations/last_run.hpp"
#include "operations/refuse.hpp"

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

jitney_status jitney_fp8_linear_backward(const jitney_fp8_linear_backward_args* args,
                                         jitney_stream stream) {
    return guarded([&] {
        note_nothing_ran();
        fp8_linear_backward(arguments(args), stream);
    });
}

}  // extern "C"
