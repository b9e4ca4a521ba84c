#include "cli/backend_choice.hpp"

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/errors.hpp"
#include "jitney/gpu.hpp"

namespace jitney::cli {

void BackendOptions::add_to(CLI::App& command, const OperationInfo& operation) {
    add_word(command, "--backend", backend, {"jit", "reference"},
             "Where to compute (jit where there is a GPU, else reference)");
    add_force(command, operation, force, "Run this kernel or fail");
    add_integer(command, "--device", device, 0, 63, "The GPU, numbered from 0 (0)");
}

void add_force(CLI::App& command, const OperationInfo& operation, std::string& force,
               const std::string& description) {
    add_word(command, "--force", force, operation.kernels, description)->type_name("KERNEL");
}

BackendChoice choose_backend(const BackendOptions& options) {
    const bool gpu_meant = options.backend == "jit" || !options.force.empty() ||
                           (options.device >= 0 && options.backend.empty());
    if (options.backend == "reference" && !options.force.empty()) {
        refuse(
            "--force names a kernel of the GPU, and --backend reference runs none: leave one "
            "of them out");
    }
    if (options.backend == "reference" && options.device >= 0) {
        refuse("--device names a GPU, and --backend reference runs on none: leave one of them out");
    }
    BackendChoice choice;
    if (!options.force.empty()) {
        choice.scope = std::make_unique<Scope>(options.force);
    } else if (!options.backend.empty()) {
        choice.scope =
            std::make_unique<Scope>(options.backend == "jit" ? Backend::jit : Backend::reference);
    }
    const bool reference =
        options.backend == "reference" || (!gpu_meant && default_backend() == Backend::reference);
    if (!reference) {
        const int device = options.device < 0 ? 0 : options.device;
        gpu_info(device);  // throws where there is none
        choice.gpu = device;
    }
    return choice;
}

}  // namespace jitney::cli
