#include "operations/attention/fields.hpp"
#include "operations/reference_call.hpp"

namespace jitney {

void CallFields<AttentionArgs>::check_values(const AttentionArgs& args) {
    AttentionArgs call = args;
    call.logits = {};  // which says nothing of them
    reference::check(reference_call(call));
}

}  // namespace jitney
