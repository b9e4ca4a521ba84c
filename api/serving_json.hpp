// A model as it was read, in JSON: the same for the C ABI and the command.
#pragma once

#include <string>

#include "jitney/serving.hpp"

namespace jitney {

const char* name_of(ServingPart part) noexcept;

std::string json_of(const ServingModel& model);

}  // namespace jitney
