// Compiles specializations with the real NVRTC, several at a time, and keeps what there is to know
// of each.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "policy/spec.hpp"
#include "runtime/compiler.hpp"

namespace jitney::tests {

struct Measurement {
    policy::Spec spec;
    runtime::CompileReport report;
    int shared_bytes = 0;  // dynamic, a block
    std::size_t cubin_bytes = 0;
    double milliseconds = 0;  // of one core: what a compile takes on a quiet machine
    std::string error;        // why it did not compile

    bool compiled() const { return error.empty(); }
};

// In the order of the specs. `done`, where given, is called after each, one call at a time.
std::vector<Measurement> measure(std::span<const policy::Spec> specs, unsigned jobs,
                                 const std::function<void(const Measurement&)>& done = {});

}  // namespace jitney::tests
