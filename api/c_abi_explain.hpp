// The JSON of an explanation.
#pragma once

#include <string>

#include "jitney/explain.hpp"

namespace jitney::c_abi {

std::string json_of(const Explanation& explanation);
std::string json_of(const ExplainedLaunches& explanation);

}  // namespace jitney::c_abi
