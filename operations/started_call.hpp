// What every public call of an operation begins with.
#pragma once

#include "operations/last_run.hpp"
#include "runtime/caller_thread.hpp"

namespace jitney {

// Nothing ran yet; and what is the calling thread's own is as it was when the call ends.
class StartedCall {
  public:
    StartedCall() noexcept { note_nothing_ran(); }

  private:
    runtime::BorrowedThread thread_;
};

}  // namespace jitney
