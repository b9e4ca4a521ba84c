// What can be seen of a call on the fake GPU, and what the reference makes of the same call.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "operations/all_fields.hpp"
#include "tests/api/call_arena.hpp"

namespace jitney::tests {

struct Observed {
    std::string error;                  // its sentence; empty where there was none
    std::string ran;                    // last_run()
    std::vector<std::string> launches;  // geometry, and what the policy decided, of each
    std::vector<std::byte> memory;      // all of the arena, afterwards; none of a refused call

    bool refused() const { return !error.empty() && launches.empty(); }
    // What index tensors hold can't be meant. On a GPU nobody checks that: the software kernels,
    // which do, fail in the middle of a launch.
    bool undefined() const { return !error.empty() && !launches.empty(); }
};

// Empty where both are alike.
std::string difference(const Observed& seen, const Observed& expected);

// Launches compute in software from here on, and are noted.
void start_observed_gpu();

// Runs `call` in the arena as it was kept, on the calling thread.
Observed observe(CallArena& arena, const std::function<void()>& call);

// Likewise for calls one after the other on a thread that made none before; tells of the last.
Observed observe_alone(CallArena& arena, const std::vector<std::function<void()>>& calls);

// Empty where the results of a call, as `seen` has them, are what the reference gives, or where it
// refuses what index tensors hold; else what is wrong.
template <class Args>
std::string difference_from_reference(CallArena& arena, const Args& args, const Observed& seen);

// The call of the operation.
template <class Args>
void call_operation(const Args& args);

#define JITNEY_DECLARE(name, call, Args)                                           \
    extern template std::string difference_from_reference(CallArena&, const Args&, \
                                                          const Observed&);        \
    template <>                                                                    \
    inline void call_operation(const Args& args) {                                 \
        jitney::call(args);                                                        \
    }
JITNEY_FOR_EACH_OPERATION(JITNEY_DECLARE)
#undef JITNEY_DECLARE

}  // namespace jitney::tests
