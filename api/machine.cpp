#include "jitney/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/arch.hpp"
#include "operations/reference/parallel.hpp"
#include "policy/kernels.hpp"
#include "runtime/compiler.hpp"
#include "runtime/driver.hpp"
#include "runtime/environment.hpp"
#include "runtime/nvrtc.hpp"

namespace jitney {
namespace {

namespace fs = std::filesystem;

// The builtins library of this version beside NVRTC; empty where there is none.
std::string builtins_of(const std::string& nvrtc, const std::string& version) {
    std::error_code ignored;
    const std::string name = fmt::format("libnvrtc-builtins.so.{}", version);
    for (const fs::path& file : {fs::path(nvrtc), fs::canonical(nvrtc, ignored)}) {
        const fs::path candidate = file.parent_path() / name;
        if (fs::exists(candidate, ignored)) return candidate.string();
    }
    return {};
}

// A kernel that does nothing: the only proof that NVRTC and its builtins work.
void compile_probe(int capability) {
    runtime::KernelSource source;
    source.specialization = "jitney_doctor";
    source.arch = Arch{static_cast<std::uint16_t>(capability), 0}.text();
    source.translation_unit = "__global__ void jitney_doctor() {}\n";
    source.function = "jitney_doctor";
    runtime::compile(source);
}

// The GPUs that some kernel can be compiled ahead for, by the names that they look for.
std::vector<std::string> arch_texts(const std::vector<int>& capabilities) {
    std::vector<std::string> texts;
    for (const int capability : capabilities) {
        const Arch arch = arch_of_capability(capability / 10, capability % 10);
        if (capability >= oldest_capability() && why_not_looked_up(arch).empty())
            texts.push_back(arch.text());
    }
    return texts;
}

void examine(CompilerState& state, const runtime::Nvrtc& nvrtc) {
    state.usable = true;
    state.path = nvrtc.path;
    state.major = nvrtc.version.major;
    state.version = fmt::format("{}.{}", nvrtc.version.major, nvrtc.version.minor);
    state.builtins = builtins_of(state.path, state.version);
    state.capabilities = nvrtc.archs;
    state.archs = arch_texts(nvrtc.archs);
    state.passed_over = runtime::passed_over_nvrtc(nvrtc.path);
    try {
        compile_probe(nvrtc.archs.empty() ? 80 : nvrtc.archs.back());
    } catch (const Error& error) {
        state.compile_problem = error.what();
    }
}

}  // namespace

CompilerState compiler_state() {
    CompilerState state;
    if (const auto& location = runtime::nvrtc_location()) {
        state.path = location->path;
        state.how = location->how;
    }
    state.asked_for = runtime::environment("JITNEY_LIBNVRTC").has_value();
    state.switched_off = !runtime::jit_enabled();
    try {
        examine(state, runtime::nvrtc());
    } catch (const Error& error) {
        state.problem = error.what();
    }
    state.refused = runtime::refused_nvrtc(state.usable ? state.path : "");
    return state;
}

DriverState driver_state() {
    const runtime::DriverStatus& status = runtime::driver_status();
    DriverState state;
    state.path = status.path;
    state.how = status.how;
    state.usable = status.usable;
    state.asked_for = runtime::environment("JITNEY_LIBCUDA").has_value();
    // A driver that can't be used may tell its version all the same.
    const int version = status.version != 0 ? status.version : runtime::driver_version();
    if (version != 0) state.version = runtime::version_text(version);
    state.major = version / 1000;
    state.problem = status.problem;
    state.refused = runtime::refused_drivers();
    state.gpus = status.usable ? status.device_count : 0;
    state.without_gpu = status.problem.find("sees no GPU") != std::string::npos;
    return state;
}

int oldest_capability() {
    return std::ranges::min(policy::kernels(), {}, &policy::KernelInfo::minimum_arch).minimum_arch;
}

std::string thread_count_problem() {
    return reference::thread_count_problem();
}

}  // namespace jitney
