#include "operations/decision.hpp"

#include <fmt/format.h>

#include <atomic>

#include "jitney/error.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/scope_access.hpp"
#include "operations/tensor_checks.hpp"
#include "runtime/environment.hpp"
#include "runtime/log.hpp"

namespace jitney {
namespace {

using policy::KernelId;

// The wishes of the environment.
struct Wishes {
    std::optional<Backend> backend;
    std::optional<KernelId> kernel;
};

Wishes read_wishes() {
    Wishes wishes;
    if (const auto backend = runtime::environment("JITNEY_BACKEND")) {
        if (*backend == "jit") {
            wishes.backend = Backend::jit;
        } else if (*backend == "reference") {
            wishes.backend = Backend::reference;
        } else {
            runtime::log::warn(fmt::format(
                "JITNEY_BACKEND is \"{}\", which is neither jit nor reference: ignored", *backend));
        }
    }
    if (const auto kernel = runtime::environment("JITNEY_FORCE")) {
        if (const policy::KernelInfo* info = policy::find_variant(*kernel)) {
            wishes.kernel = info->id;
        } else {
            runtime::log::warn(
                fmt::format("JITNEY_FORCE is \"{}\", which is no kernel (there are {}): ignored",
                            *kernel, kernel_names()));
        }
    }
    return wishes;
}

const Wishes& wishes() {
    static const Wishes read = read_wishes();
    return read;
}

void warn_once(std::atomic<bool>& said, const std::string& sentence) {
    if (!said.exchange(true)) runtime::log::warn(sentence);
}

std::optional<KernelId> only_of(std::string_view operation, std::optional<KernelId> kernel) {
    return kernel && policy::info(*kernel).operation == operation ? kernel : std::nullopt;
}

[[noreturn]] void throw_wrong_place(Backend backend, const Device& device) {
    if (backend == Backend::reference) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("the scope asks for the reference backend, which runs on host "
                                "tensors, and these are in {}: copy them to the host, or leave the "
                                "scope",
                                checks::text_of(device)));
    }
    throw Error(ErrorCode::unsupported,
                "the scope asks for a kernel on the GPU, and these tensors are in host memory: "
                "copy them to a GPU, or leave the scope");
}

// Once; the reference backend itself has no log.
void warn_of_threads() {
    static const bool warned = [] {
        const std::string problem = reference::thread_count_problem();
        if (!problem.empty()) runtime::log::warn(problem);
        return !problem.empty();
    }();
    static_cast<void>(warned);
}

Decision decide_in_scope(const Scope& scope, std::string_view operation, const Device& device) {
    const Backend backend = ScopeAccess::backend(scope);
    const bool on_host = device.type == DeviceType::cpu;
    if (on_host != (backend == Backend::reference)) throw_wrong_place(backend, device);
    if (on_host) warn_of_threads();
    return {backend, only_of(operation, ScopeAccess::kernel(scope)), true};
}

Decision decide_on_host(std::string_view operation, const Wishes& wished) {
    warn_of_threads();
    static std::atomic<bool> said{false};
    if (wished.backend == Backend::jit || only_of(operation, wished.kernel)) {
        warn_once(said,
                  "the environment (JITNEY_BACKEND, JITNEY_FORCE) asks for kernels on the GPU; "
                  "calls whose tensors are in host memory run on the reference backend");
    }
    return {Backend::reference, std::nullopt, false};
}

}  // namespace

Decision decide(std::string_view operation, const Device& device) {
    if (const Scope* scope = ScopeAccess::innermost()) {
        return decide_in_scope(*scope, operation, device);
    }
    const Wishes& wished = wishes();
    if (device.type == DeviceType::cpu) return decide_on_host(operation, wished);
    if (wished.backend == Backend::reference) [[unlikely]] {
        static std::atomic<bool> said{false};
        warn_once(said,
                  "JITNEY_BACKEND asks for the reference backend, which runs on host tensors; "
                  "calls whose tensors are on a GPU run there");
    }
    return {Backend::jit, only_of(operation, wished.kernel), false};
}

std::optional<KernelId> named_kernel(std::string_view operation) {
    if (const Scope* scope = ScopeAccess::innermost()) {
        return only_of(operation, ScopeAccess::kernel(*scope));
    }
    return only_of(operation, wishes().kernel);
}

void warn_not_forced(KernelId kernel, const std::string& reason) {
    static std::atomic<bool> said{false};
    warn_once(said, fmt::format("JITNEY_FORCE asks for {}, which can't run a call ({}): other "
                                "kernels run where it can't",
                                policy::info(kernel).name, reason));
}

}  // namespace jitney
