// NVRTC, the driver and the GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/doctor.hpp"
#include "core/arch.hpp"
#include "jitney/error.hpp"
#include "policy/kernels.hpp"
#include "runtime/compiler.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/environment.hpp"
#include "runtime/nvrtc.hpp"

namespace jitney::cli {

namespace {

namespace fs = std::filesystem;

// The builtins library of this version beside NVRTC; empty where there is none.
std::string builtins_of(const std::string& nvrtc, const runtime::CompilerVersion& version) {
    std::error_code ignored;
    const std::string name =
        fmt::format("libnvrtc-builtins.so.{}.{}", version.major, version.minor);
    for (const fs::path& file : {fs::path(nvrtc), fs::canonical(nvrtc, ignored)}) {
        const fs::path candidate = file.parent_path() / name;
        if (fs::exists(candidate, ignored)) return candidate.string();
    }
    return {};
}

// Compiles a kernel that does nothing: the only proof that NVRTC and its builtins work.
void compile_probe(int number) {
    runtime::KernelSource source;
    source.specialization = "jitney_doctor";
    source.arch = Arch{static_cast<std::uint16_t>(number), 0}.text();
    source.translation_unit = "__global__ void jitney_doctor() {}\n";
    source.function = "jitney_doctor";
    runtime::compile(source);
}

int oldest_of_kernels() {
    int oldest = policy::kernels().front().minimum_arch;
    for (const policy::KernelInfo& kernel : policy::kernels())
        oldest = std::min(oldest, kernel.minimum_arch);
    return oldest;
}

// Those of NVRTC's that some kernel can be compiled ahead for, by the names that GPUs look for.
std::vector<std::string> arch_texts(const std::vector<int>& numbers) {
    const int oldest = oldest_of_kernels();
    std::vector<std::string> texts;
    for (const int number : numbers) {
        const Arch arch = arch_of_capability(number / 10, number % 10);
        if (number >= oldest && why_not_looked_up(arch).empty()) texts.push_back(arch.text());
    }
    return texts;
}

// NVRTC once it was opened; null where it can't be.
const runtime::Nvrtc* opened_nvrtc(std::string* problem) {
    try {
        return &runtime::nvrtc();
    } catch (const Error& error) {
        *problem = error.what();
        return nullptr;
    }
}

void examine_gpu(Diagnosis& diagnosis, const runtime::DeviceInfo& gpu, Json& list) {
    const int number = 10 * gpu.major + gpu.minor;
    std::string problem;
    const runtime::Nvrtc* const nvrtc = opened_nvrtc(&problem);
    const bool known =
        nvrtc != nullptr && std::binary_search(nvrtc->archs.begin(), nvrtc->archs.end(), number);
    list.push_back({{"index", gpu.ordinal},
                    {"name", gpu.name},
                    {"arch", gpu.arch},
                    {"sms", gpu.multiprocessors},
                    {"memory_bytes", gpu.memory_bytes},
                    {"l2_bytes", gpu.l2_bytes},
                    {"shared_bytes_per_block", gpu.shared_bytes_per_block},
                    {"nvrtc_knows", known}});
    diagnosis.fact(fmt::format("GPU {}", gpu.ordinal),
                   fmt::format("{}, {}, {} SMs, {}", gpu.name, gpu.arch, gpu.multiprocessors,
                               text_of_bytes(gpu.memory_bytes)));
    const int oldest = oldest_of_kernels();
    if (number < oldest) {
        diagnosis.fault(fmt::format("GPU {} is {}, and no kernel runs below sm_{}: use a newer GPU",
                                    gpu.ordinal, gpu.arch, oldest));
    } else if (nvrtc != nullptr && !known) {
        diagnosis.note(fmt::format(
            "NVRTC {}.{} does not know {} of GPU {} yet, so that the driver compiles the last "
            "step, at each first use: install a newer NVRTC",
            nvrtc->version.major, nvrtc->version.minor, gpu.arch, gpu.ordinal));
    }
    if (nvrtc != nullptr && nvrtc->version.major > gpu.driver_version / 1000) {
        diagnosis.fault(fmt::format(
            "the driver supports CUDA {}, and what NVRTC {}.{} compiles may not load in it: update "
            "the driver, or install an NVRTC of CUDA {} beside the newer one (the Python package "
            "nvidia-cuda-nvrtc-cu{} has it), or set JITNEY_LIBNVRTC to one",
            runtime::version_text(gpu.driver_version), nvrtc->version.major, nvrtc->version.minor,
            gpu.driver_version / 1000, gpu.driver_version / 1000));
    }
}

}  // namespace

void examine_compiler(Diagnosis& diagnosis) {
    Json section = {{"found", false},     {"path", nullptr},     {"how", nullptr},
                    {"version", nullptr}, {"builtins", nullptr}, {"archs", Json::array()},
                    {"compiles", false}};
    const auto& location = runtime::nvrtc_location();
    if (location) {
        section["found"] = true;
        section["path"] = location->path;
        section["how"] = location->how;
    }
    std::string problem;
    const runtime::Nvrtc* const nvrtc = opened_nvrtc(&problem);
    for (std::string& text : runtime::refused_nvrtc(nvrtc != nullptr ? nvrtc->path : ""))
        diagnosis.fault(std::move(text));
    if (nvrtc == nullptr) {
        const bool asked_for = runtime::environment("JITNEY_LIBNVRTC").has_value();
        diagnosis.fact("NVRTC", location ? location->path + ", can't be used" : "not found");
        diagnosis.findings.push_back({location.has_value() || asked_for, problem});
        diagnosis.json["nvrtc"] = std::move(section);
        return;
    }
    for (const std::string& newer : runtime::passed_over_nvrtc(nvrtc->path)) {
        diagnosis.note(
            fmt::format("NVRTC {} is passed over, since the driver supports CUDA {} and loads "
                        "nothing newer: update the driver to have it used",
                        newer, runtime::version_text(runtime::driver_version())));
    }
    const std::string version = fmt::format("{}.{}", nvrtc->version.major, nvrtc->version.minor);
    const std::string builtins = builtins_of(nvrtc->path, nvrtc->version);
    const std::vector<std::string> archs = arch_texts(nvrtc->archs);
    section["found"] = true;
    section["path"] = nvrtc->path;
    section["version"] = version;
    section["builtins"] = builtins.empty() ? Json(nullptr) : Json(builtins);
    section["archs"] = archs;
    diagnosis.fact("NVRTC", fmt::format("{}, {}", version, nvrtc->path));
    diagnosis.fact("  builtins", builtins.empty() ? "not beside it" : builtins);
    diagnosis.fact("  architectures", fmt::format("{}", fmt::join(archs, " ")));
    try {
        compile_probe(nvrtc->archs.empty() ? 80 : nvrtc->archs.back());
        diagnosis.compiler = true;
    } catch (const Error& error) {
        diagnosis.fault(fmt::format(
            "NVRTC {} does not compile ({}): install it whole, {} included, or set "
            "JITNEY_LIBNVRTC to another one",
            nvrtc->path, error.what(), fmt::format("libnvrtc-builtins.so.{}", version)));
    }
    section["compiles"] = diagnosis.compiler;
    if (!runtime::jit_enabled()) {
        diagnosis.compiler = false;
        diagnosis.note("JITNEY_JIT=off: calls compile nothing, and run what the cache holds");
    }
    diagnosis.json["nvrtc"] = std::move(section);
}

void examine_driver(Diagnosis& diagnosis) {
    const runtime::DriverStatus& status = runtime::driver_status();
    for (std::string& text : runtime::refused_drivers())
        diagnosis.fault(std::move(text));
    Json section = {{"found", !status.path.empty()},
                    {"usable", status.usable},
                    {"path", nullptr},
                    {"how", nullptr},
                    {"version", nullptr}};
    if (!status.path.empty()) {
        section["path"] = status.path;
        section["how"] = status.how;
    }
    const std::string version = status.version != 0
                                    ? "CUDA " + runtime::version_text(status.version)
                                    : "of unknown version";
    if (status.version != 0) section["version"] = runtime::version_text(status.version);
    diagnosis.fact("driver",
                   status.path.empty() ? "not found" : fmt::format("{}, {}", version, status.path));
    diagnosis.json["driver"] = std::move(section);
    if (!status.usable) {
        // A driver without a GPU is a container without one; no driver is a machine without one.
        const bool no_gpu = status.problem.find("sees no GPU") != std::string::npos;
        const bool asked_for = runtime::environment("JITNEY_LIBCUDA").has_value();
        diagnosis.findings.push_back({status.path.empty() ? asked_for : !no_gpu, status.problem});
    }
    Json gpus = Json::array();
    for (int ordinal = 0; status.usable && ordinal < status.device_count; ++ordinal) {
        try {
            examine_gpu(diagnosis, runtime::device(ordinal), gpus);
            diagnosis.gpu = true;
        } catch (const Error& error) {
            diagnosis.fault(fmt::format("GPU {} does not answer: {}", ordinal, error.what()));
        }
    }
    if (gpus.empty()) diagnosis.fact("GPUs", "none");
    diagnosis.json["gpus"] = std::move(gpus);
}

}  // namespace jitney::cli
