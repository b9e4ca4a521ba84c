// Where exceptions end: the calls of the C ABI run within guarded(), which turns one into the
// status that it stands for, and keeps its sentence for the thread.
#pragma once

#include "jitney/jitney.h"

namespace jitney::c_abi {

// The previous call's sentence no longer counts.
void forget_error() noexcept;
// Keeps what the exception in flight says. Never throws: where there is no memory for the sentence,
// a shorter one stands for it.
jitney_status keep_error() noexcept;

template <class Body>
jitney_status guarded(Body&& body) noexcept {
    forget_error();
    try {
        body();
        return JITNEY_SUCCESS;
    } catch (...) {
        return keep_error();
    }
}

}  // namespace jitney::c_abi
