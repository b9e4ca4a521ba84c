// How the blocks of a launch find the largest magnitude of what they see.
#pragma once

namespace jitney {

// Zero between launches.
struct AmaxCounters {
    unsigned largest;  // of the blocks so far, as the bits of a float
    unsigned arrived;  // blocks
};

}  // namespace jitney
