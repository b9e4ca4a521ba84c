#include "runtime/driver.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>

#include "jitney/error.hpp"
#include "runtime/caller_thread.hpp"
#include "runtime/dynamic_library.hpp"
#include "runtime/environment.hpp"
#include "runtime/log.hpp"

namespace jitney::runtime {
namespace detail {
std::atomic<const Driver*> usable_driver{nullptr};
}  // namespace detail

namespace {

constexpr std::array kSonames = {"libcuda.so.1"};

// A cast from an object pointer to a function pointer, as dlsym demands it.
template <class Function>
void resolve(const DynamicLibrary& library, const char* symbol, Function& function) {
    void* address = library.symbol(symbol);
    std::memcpy(&function, &address, sizeof function);
}

constexpr LibrarySearch kSearch = {
    .name = "the CUDA driver", .variable = "JITNEY_LIBCUDA", .sonames = kSonames};

// The library, its functions and its version: all that can be known before the driver starts.
struct Opened {
    Driver table;
    DriverStatus status;
    std::string missing;

    Opened() {
        const KeptThread kept;
        OpenedLibrary opened = open_library(kSearch, find_libraries(kSearch));
        if (!opened.library) {
            status.problem = fmt::format(
                "no CUDA driver: {}; install the NVIDIA driver, or run this on a machine that "
                "has one",
                opened.error);
            return;
        }
        status.path = opened.found.path;
        status.how = opened.found.how;
        missing = fill(opened.library);
        opened.library.keep();
        if (table.cuDriverGetVersion != nullptr) table.cuDriverGetVersion(&status.version);
    }

  private:
    // The first required symbol that the library lacks.
    std::string fill(const DynamicLibrary& library) {
        std::string lacking;
#define JITNEY_NAME(function) #function
#define JITNEY_REQUIRED(function)                            \
    resolve(library, JITNEY_NAME(function), table.function); \
    if (table.function == nullptr && lacking.empty()) lacking = JITNEY_NAME(function);
#define JITNEY_OPTIONAL(function) resolve(library, JITNEY_NAME(function), table.function);
        JITNEY_DRIVER_FUNCTIONS(JITNEY_REQUIRED)
        JITNEY_OPTIONAL_DRIVER_FUNCTIONS(JITNEY_OPTIONAL)
#undef JITNEY_OPTIONAL
#undef JITNEY_REQUIRED
#undef JITNEY_NAME
        // Newer headers name a second version of this one, of the same type; older drivers have
        // the first alone.
        if (table.cuEventElapsedTime == nullptr) {
            resolve(library, "cuEventElapsedTime", table.cuEventElapsedTime);
        }
        return lacking;
    }
};

// Never destroyed: the driver may be asked while the program ends.
const Opened& opened_driver() {
    static const Opened* const result = new Opened;
    return *result;
}

struct Probe {
    const Driver& table = opened_driver().table;
    DriverStatus status = opened_driver().status;

    Probe() {
        const KeptThread kept;
        if (status.path.empty()) return;
        const auto begin = std::chrono::steady_clock::now();
        start(opened_driver().missing);
        if (!status.usable) return;
        const std::chrono::duration<double, std::milli> spent =
            std::chrono::steady_clock::now() - begin;
        log::info(
            fmt::format("the CUDA driver {} ({}) supports CUDA {}, sees {} GPUs, started in "
                        "{:.1f} ms",
                        status.path, status.how, version_text(status.version), status.device_count,
                        spent.count()));
    }

  private:
    void start(const std::string& missing) {
        if (status.version != 0 && status.version < kMinimumDriverVersion) {
            status.problem = fmt::format(
                "the CUDA driver {} supports CUDA {}, and Jitney needs {} or newer: update the "
                "NVIDIA driver",
                status.path, version_text(status.version), version_text(kMinimumDriverVersion));
            return;
        }
        if (!missing.empty() && status.version == 0) {
            status.problem = fmt::format(
                "{} is no CUDA driver, it has no {}: {}", status.path, missing,
                environment("JITNEY_LIBCUDA")
                    ? "let JITNEY_LIBCUDA name the NVIDIA driver's libcuda.so.1, or unset it"
                    : "install the NVIDIA driver");
            return;
        }
        if (!missing.empty()) {
            status.problem = fmt::format(
                "the CUDA driver {} has no {}, so it is older than CUDA {}: update the NVIDIA "
                "driver",
                status.path, missing, version_text(kMinimumDriverVersion));
            return;
        }
        if (const CUresult result = table.cuInit(0); result != CUDA_SUCCESS) {
            status.problem = result == CUDA_ERROR_NO_DEVICE
                                 ? fmt::format(
                                       "the CUDA driver {} sees no GPU: check nvidia-smi, "
                                       "CUDA_VISIBLE_DEVICES and the container's GPU "
                                       "option",
                                       status.path)
                                 : fmt::format(
                                       "the CUDA driver {} did not start, cuInit returned "
                                       "{}: check nvidia-smi and that the kernel module "
                                       "is of the same version",
                                       status.path, name(result));
            return;
        }
        if (table.cuDeviceGetCount(&status.device_count) != CUDA_SUCCESS ||
            status.device_count == 0) {
            status.problem = fmt::format(
                "the CUDA driver {} sees no GPU: check nvidia-smi, CUDA_VISIBLE_DEVICES and the "
                "container's GPU option",
                status.path);
            return;
        }
        status.usable = true;
        detail::usable_driver.store(&table, std::memory_order_release);
    }

    std::string name(CUresult result) const {
        const char* text = nullptr;
        if (table.cuGetErrorName(result, &text) != CUDA_SUCCESS || text == nullptr) {
            return fmt::format("error {}", static_cast<int>(result));
        }
        return text;
    }
};

const Probe& probe() {
    static const Probe* const result = new Probe;
    return *result;
}

// A fault that the context does not recover from.
bool is_sticky(CUresult result) {
    switch (result) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
            return true;
        default:
            return false;
    }
}

bool is_capture(CUresult result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

ErrorCode code_of(CUresult result) {
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return ErrorCode::out_of_memory;
    if (is_capture(result)) return ErrorCode::capture;
    return ErrorCode::driver;
}

}  // namespace

const DriverStatus& driver_status() {
    return probe().status;
}

int driver_version() {
    return opened_driver().status.version;
}

std::vector<std::string> refused_drivers() {
    std::vector<std::string> texts;
    for (const FoundLibrary& each : find_libraries(kSearch)) {
        if (each.path == opened_driver().status.path) break;
        if (!each.refusal.empty()) texts.push_back(text_of_refusal(kSearch, each));
    }
    return texts;
}

const Driver& detail::need_driver() {
    const Probe& found = probe();
    if (!found.status.usable) throw Error(ErrorCode::no_device, found.status.problem);
    return found.table;
}

std::string describe(CUresult result) {
    const char* name = nullptr;
    const char* meaning = nullptr;
    const Driver& table = driver();
    if (table.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
        return fmt::format("error {}", static_cast<int>(result));
    }
    if (table.cuGetErrorString(result, &meaning) != CUDA_SUCCESS || meaning == nullptr) return name;
    return fmt::format("{} ({})", name, meaning);
}

void detail::throw_driver_error(CUresult result, const char* what) {
    std::string text = fmt::format("{}: the CUDA driver returned {}", what, describe(result));
    if (is_sticky(result)) {
        text +=
            "; an earlier kernel of this context failed, of this library or another, and the "
            "context can't be used any more: find the kernel with compute-sanitizer";
    }
    throw Error(code_of(result), text);
}

std::string version_text(int cuda_version) {
    return fmt::format("{}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
}

}  // namespace jitney::runtime
