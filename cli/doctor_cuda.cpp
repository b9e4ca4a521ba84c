// NVRTC, the driver and the GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/doctor.hpp"
#include "jitney/gpu.hpp"
#include "jitney/machine.hpp"

namespace jitney::cli {

namespace {

Json path_of(const LibraryState& library) {
    return library.path.empty() ? Json(nullptr) : Json(library.path);
}

void examine_gpu(Diagnosis& diagnosis, const GpuInfo& gpu, const DriverState& driver, Json& list) {
    const CompilerState& compiler = diagnosis.nvrtc;
    const bool known = std::ranges::binary_search(compiler.capabilities, gpu.capability);
    list.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"arch", gpu.arch},
                    {"sms", gpu.multiprocessors},
                    {"memory_bytes", gpu.memory_bytes},
                    {"l2_bytes", gpu.l2_bytes},
                    {"shared_bytes_per_block", gpu.shared_bytes_per_block},
                    {"nvrtc_knows", known}});
    diagnosis.fact(fmt::format("GPU {}", gpu.index),
                   fmt::format("{}, {}, {} SMs, {}", gpu.name, gpu.arch, gpu.multiprocessors,
                               text_of_bytes(gpu.memory_bytes)));
    const int oldest = oldest_capability();
    if (gpu.capability < oldest) {
        diagnosis.fault(fmt::format("GPU {} is {}, and no kernel runs below sm_{}: use a newer GPU",
                                    gpu.index, gpu.arch, oldest));
    } else if (compiler.usable && !known) {
        diagnosis.note(fmt::format(
            "NVRTC {} does not know {} of GPU {} yet, so that the driver compiles the last "
            "step, at each first use: install a newer NVRTC",
            compiler.version, gpu.arch, gpu.index));
    }
    if (compiler.usable && compiler.major > driver.major) {
        diagnosis.fault(fmt::format(
            "the driver supports CUDA {}, and what NVRTC {} compiles may not load in it: update "
            "the driver, or install an NVRTC of CUDA {} beside the newer one (the Python package "
            "nvidia-cuda-nvrtc-cu{} has it), or set JITNEY_LIBNVRTC to one",
            driver.version, compiler.version, driver.major, driver.major));
    }
}

}  // namespace

void examine_compiler(Diagnosis& diagnosis) {
    const CompilerState& state = diagnosis.nvrtc = compiler_state();
    const bool found = !state.path.empty();
    Json section = {{"found", found},     {"path", path_of(state)}, {"how", nullptr},
                    {"version", nullptr}, {"builtins", nullptr},    {"archs", Json::array()},
                    {"compiles", false}};
    if (!state.how.empty()) section["how"] = state.how;
    for (const std::string& text : state.refused)
        diagnosis.fault(text);
    if (!state.usable) {
        diagnosis.fact("NVRTC", found ? state.path + ", can't be used" : "not found");
        diagnosis.findings.push_back({found || state.asked_for, state.problem});
        diagnosis.json["nvrtc"] = std::move(section);
        return;
    }
    for (const std::string& newer : state.passed_over) {
        diagnosis.note(
            fmt::format("NVRTC {} is passed over, since the driver supports CUDA {} and loads "
                        "nothing newer: update the driver to have it used",
                        newer, driver_state().version));
    }
    section["version"] = state.version;
    if (!state.builtins.empty()) section["builtins"] = state.builtins;
    section["archs"] = state.archs;
    diagnosis.fact("NVRTC", fmt::format("{}, {}", state.version, state.path));
    diagnosis.fact("  builtins", state.builtins.empty() ? "not beside it" : state.builtins);
    diagnosis.fact("  architectures", fmt::format("{}", fmt::join(state.archs, " ")));
    diagnosis.compiler = state.compile_problem.empty();
    if (!diagnosis.compiler) {
        diagnosis.fault(fmt::format(
            "NVRTC {} does not compile ({}): install it whole, libnvrtc-builtins.so.{} included, "
            "or set JITNEY_LIBNVRTC to another one",
            state.path, state.compile_problem, state.version));
    }
    section["compiles"] = diagnosis.compiler;
    if (state.switched_off) {
        diagnosis.compiler = false;
        diagnosis.note("JITNEY_JIT=off: calls compile nothing, and run what the cache holds");
    }
    diagnosis.json["nvrtc"] = std::move(section);
}

void examine_driver(Diagnosis& diagnosis) {
    const DriverState state = driver_state();
    for (const std::string& text : state.refused)
        diagnosis.fault(text);
    Json section = {{"found", !state.path.empty()},
                    {"usable", state.usable},
                    {"path", path_of(state)},
                    {"how", nullptr},
                    {"version", nullptr}};
    if (!state.path.empty()) section["how"] = state.how;
    const std::string version =
        state.version.empty() ? "of unknown version" : "CUDA " + state.version;
    if (!state.version.empty()) section["version"] = state.version;
    diagnosis.fact("driver",
                   state.path.empty() ? "not found" : fmt::format("{}, {}", version, state.path));
    diagnosis.json["driver"] = std::move(section);
    if (!state.usable) {
        // A driver without a GPU is a container without one; no driver is a machine without one.
        const bool fault = state.path.empty() ? state.asked_for : !state.without_gpu;
        diagnosis.findings.push_back({fault, state.problem});
    }
    Json gpus = Json::array();
    for (int index = 0; index < state.gpus; ++index) {
        try {
            examine_gpu(diagnosis, gpu_info(index), state, gpus);
            diagnosis.gpu = true;
        } catch (const Error& error) {
            diagnosis.fault(fmt::format("GPU {} does not answer: {}", index, error.what()));
        }
    }
    if (gpus.empty()) diagnosis.fact("GPUs", "none");
    diagnosis.json["gpus"] = std::move(gpus);
}

}  // namespace jitney::cli
