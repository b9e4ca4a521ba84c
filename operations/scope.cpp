#include <fmt/format.h>

#include "jitney/error.hpp"
#include "operations/check_enum.hpp"
#include "operations/scope_access.hpp"

namespace jitney {
namespace {

constinit thread_local const Scope* innermost_scope = nullptr;

const policy::KernelInfo& find(std::string_view name) {
    const policy::KernelInfo* info = policy::find_variant(name);
    if (info != nullptr) return *info;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("there is no kernel '{}': a scope names one of {}", name, kernel_names()));
}

}  // namespace

std::string kernel_names() {
    std::string names;
    for (const policy::KernelInfo& kernel : policy::kernels()) {
        if (kernel.helper) continue;
        if (!names.empty()) names += ", ";
        names += kernel.name;
    }
    return names;
}

const Scope* ScopeAccess::innermost() noexcept {
    return innermost_scope;
}

Scope::Scope(Backend backend) : outer_(innermost_scope), backend_(backend) {
    checks::check_enum<Backend>("backend", backend,
                                {{Backend::jit, "jit"}, {Backend::reference, "reference"}});
    innermost_scope = this;
}

Scope::Scope(std::string_view kernel)
    : outer_(innermost_scope), kernel_(static_cast<int>(find(kernel).id)) {
    innermost_scope = this;
}

Scope::~Scope() {
    innermost_scope = outer_;
}

}  // namespace jitney
