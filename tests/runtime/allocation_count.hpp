// How often this thread has asked operator new for memory.
#pragma once

namespace jitney::tests {

long allocations_of_this_thread();

}  // namespace jitney::tests
