// Which backend a command runs its tensors on, from its options, the environment and the machine.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "jitney/backend.hpp"
#include "jitney/operations.hpp"

namespace CLI {
class App;
}

namespace jitney::cli {

struct BackendOptions {
    std::string backend;  // "jit", "reference", or empty: jit where there is a GPU
    std::string force;    // a kernel's name
    int device = -1;      // the GPU; -1: not given

    void add_to(CLI::App& command, const OperationInfo& operation);
};

// --force: a kernel of the operation.
void add_force(CLI::App& command, const OperationInfo& operation, std::string& force,
               const std::string& description);

struct BackendChoice {
    std::optional<int> gpu;        // no value: the reference backend, on the host
    std::unique_ptr<Scope> scope;  // in force until the choice goes
};

// Throws Error where the options contradict each other, or ask for a GPU that is not there.
BackendChoice choose_backend(const BackendOptions& options);

}  // namespace jitney::cli
