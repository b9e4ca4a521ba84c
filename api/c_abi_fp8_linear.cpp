// The state of a linear layer on FP8, from C.
#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "operations/fp8_linear/fields.hpp"
#include "operations/refuse.hpp"

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

jitney_status jitney_fp8_state_columns(const jitney_fp8_recipe* recipe, int32_t* columns) {
    return guarded([&] {
        if (recipe == nullptr) checks::refuse("recipe is null: point it to a jitney_fp8_recipe");
        if (columns == nullptr) checks::refuse("columns is null: point it to an int32_t");
        Fp8Recipe known;
        Lists none;
        take(known, "recipe", none, *recipe);
        *columns = fp8_state_columns(known);
    });
}

jitney_status jitney_fp8_state_reset(const DLTensor* state, jitney_stream stream) {
    return guarded([&] { fp8_state_reset(required(state, "state"), stream); });
}

}  // extern "C"
