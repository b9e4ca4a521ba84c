// The threads of the reference backend.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace jitney::reference {

// Threads that parallel_for uses at most: JITNEY_NUM_THREADS where it is a whole number of at least
// 1, else what the machine offers.
int thread_count();

// Why JITNEY_NUM_THREADS has no effect, in a sentence; empty where it has one or is not set.
std::string thread_count_problem();

// Calls task(i) once for every i in [0, count), in no order, on several threads, and returns when
// all have ended. The first exception that a task throws stops the hand-out and is thrown here.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task);

}  // namespace jitney::reference
