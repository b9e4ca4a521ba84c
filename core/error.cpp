#include "jitney/error.hpp"

#include "core/printable.hpp"

namespace jitney {

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(printable(message)), code_(code) {}

}  // namespace jitney
