// What the machine reports: a kernel did something that a GPU would not have forgiven.
#pragma once

#include <stdexcept>
#include <string>

namespace jitney::emulator {

// what() says what happened, which thread of which block did it, where the others wait, and the
// seed that shows it again.
class Fault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace jitney::emulator
