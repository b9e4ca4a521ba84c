// The checks of a logits function's values.
#pragma once

#include <cstdint>

#include "jitney/logits.hpp"

namespace jitney::checks {

// That each parameter has a value of its kind. Returns the function's digest.
std::uint64_t check_logits(const LogitsFunction& function, const LogitsValues& values);

}  // namespace jitney::checks
