#include "runtime/nvrtc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>

#include "cache/trust.hpp"
#include "jitney/error.hpp"
#include "runtime/caller_thread.hpp"
#include "runtime/driver.hpp"
#include "runtime/dynamic_library.hpp"
#include "runtime/environment.hpp"
#include "runtime/log.hpp"

namespace jitney::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSonames = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr std::string_view kLibraryPrefix = "libnvrtc.so.";
constexpr std::string_view kBuiltinsPrefix = "libnvrtc-builtins.so.";
constexpr CompilerVersion kOldest = {12, 0};
constexpr const char* kMend =
    "install libnvrtc of CUDA 12 or 13 (the Python packages nvidia-cuda-nvrtc-cu12 and, for CUDA "
    "13, nvidia-cuda-nvrtc have it), set JITNEY_LIBNVRTC to its full path, or fill the cache ahead "
    "with jitney prewarm where it is installed";

constexpr std::array kPackages = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

constexpr LibrarySearch kSearch = {.name = "NVRTC",
                                   .variable = "JITNEY_LIBNVRTC",
                                   .sonames = kSonames,
                                   .toolkit = true,
                                   .packages = kPackages};

// Takes a number and, unless the text ends there, a dot.
std::optional<int> take_number(std::string_view& text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty()) {
        if (text.front() != '.') return std::nullopt;
        text.remove_prefix(1);
    }
    return value;
}

struct NameVersion {
    std::optional<int> major;
    std::optional<int> minor;
};

// "libnvrtc.so.13.0.48" after its prefix.
NameVersion version_after(std::string_view name, std::string_view prefix) {
    NameVersion version;
    if (name.substr(0, prefix.size()) != prefix) return version;
    name.remove_prefix(prefix.size());
    version.major = take_number(name);
    if (version.major) version.minor = take_number(name);
    return version;
}

// The builtins libraries beside NVRTC that are of its major version, where that is known.
std::vector<fs::path> builtins_beside(const fs::path& file, std::optional<int> major) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator at(file.parent_path(), error), end; !error && at != end;
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        const NameVersion version = version_after(name, kBuiltinsPrefix);
        if (version.minor && (!major || version.major == major)) found.push_back(at->path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

// 13 of "libnvrtc.so.13"; nothing where the name tells none.
std::optional<int> major_of(const FoundLibrary& library) {
    return version_after(fs::path(library.path).filename().string(), kLibraryPrefix).major;
}

// NVRTC runs the code of its builtins library: it is held to the same rule.
std::string distrust_of_builtins(const std::string& path) {
    std::error_code ignored;
    const fs::path real = fs::canonical(path, ignored);
    for (const fs::path& file : {fs::path(path), real}) {
        for (const fs::path& each : builtins_beside(file, std::nullopt)) {
            const std::string why =
                cache::distrust_of_code(cache::FileSystem::posix(), each.string());
            if (!why.empty()) return fmt::format("needs {}, which {}", each.string(), why);
        }
    }
    return {};
}

template <class Function>
bool resolve(const DynamicLibrary& library, const char* symbol, Function& function) {
    void* address = library.symbol(symbol);
    std::memcpy(&function, &address, sizeof function);
    return address != nullptr;
}

// Fills the table; why the library is no NVRTC that will do, where it is none.
std::string fill(const DynamicLibrary& library, Nvrtc& table) {
    std::string missing;
#define JITNEY_RESOLVE(function) \
    if (!resolve(library, #function, table.function) && missing.empty()) missing = #function;
    JITNEY_NVRTC_FUNCTIONS(JITNEY_RESOLVE)
#undef JITNEY_RESOLVE
    if (!missing.empty()) {
        return fmt::format("{} has no {}, so it is no NVRTC", library.path(), missing);
    }
    table.nvrtcVersion(&table.version.major, &table.version.minor);
    if (table.version.major < kOldest.major) {
        return fmt::format("{} is NVRTC {}.{}, older than {}.{}", library.path(),
                           table.version.major, table.version.minor, kOldest.major, kOldest.minor);
    }
    return {};
}

// The driver loads no machine code of a newer CUDA's major version.
bool is_too_new(const FoundLibrary& library, int driver_version) {
    const int major = major_of(library).value_or(0);
    return driver_version != 0 && major > driver_version / 1000;
}

// What the search finds, in the order in which it is tried: what the driver can't load the output
// of comes last. The driver is asked only where that makes a difference.
std::vector<FoundLibrary> candidates() {
    std::vector<FoundLibrary> found = find_libraries(kSearch);
    for (FoundLibrary& each : found) {
        if (each.checked && each.refusal.empty()) each.refusal = distrust_of_builtins(each.path);
    }
    const auto differs = [&found](const FoundLibrary& each) {
        return major_of(each) != major_of(found.front());
    };
    if (std::any_of(found.begin(), found.end(), differs)) {
        const int driver = driver_version();
        std::stable_partition(found.begin(), found.end(), [driver](const FoundLibrary& each) {
            return !is_too_new(each, driver);
        });
    }
    return found;
}

// NVRTC opens its builtins by their bare name, which finds them only on the loader's path. Opened
// here first, by the path beside NVRTC, they are found wherever NVRTC was found.
void open_builtins(const std::string& path, const CompilerVersion& version) {
    std::error_code ignored;
    const fs::path real = fs::canonical(path, ignored);
    const std::string name = fmt::format("{}{}.{}", kBuiltinsPrefix, version.major, version.minor);
    for (const fs::path& directory : {fs::path(path).parent_path(), real.parent_path()}) {
        std::string error;
        DynamicLibrary builtins = DynamicLibrary::open((directory / name).string(), &error);
        if (builtins) return builtins.keep();
    }
}

const Nvrtc* open_nvrtc() {
    const KeptThread kept;
    const auto start = std::chrono::steady_clock::now();
    auto table = std::make_unique<Nvrtc>();
    OpenedLibrary opened =
        open_library(kSearch, candidates(),
                     [&table](const DynamicLibrary& library) { return fill(library, *table); });
    if (!opened.library) {
        // Where the variable names it, the error says already what to set it to.
        const bool named = environment(kSearch.variable).has_value();
        throw Error(ErrorCode::no_compiler,
                    fmt::format("NVRTC can't be opened: {}{}", opened.error,
                                named ? std::string(", or fill the cache ahead with jitney prewarm "
                                                    "where NVRTC is installed")
                                      : fmt::format("; {}", kMend)));
    }
    table->path = opened.found.path;
    int count = 0;
    if (table->nvrtcGetNumSupportedArchs(&count) == NVRTC_SUCCESS && count > 0) {
        table->archs.resize(static_cast<std::size_t>(count));
        table->nvrtcGetSupportedArchs(table->archs.data());
        std::sort(table->archs.begin(), table->archs.end());
    }
    open_builtins(table->path, table->version);
    opened.library.keep();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    log::info(fmt::format("NVRTC {}.{} opened in {:.1f} ms: {} ({})", table->version.major,
                          table->version.minor, spent.count(), table->path, opened.found.how));
    return table.release();  // lives as long as the process
}

std::optional<NvrtcLocation> locate() {
    for (const FoundLibrary& found : candidates()) {
        std::error_code ignored;
        if (!found.refusal.empty() || !fs::is_regular_file(found.path, ignored)) continue;
        return NvrtcLocation{found.path, found.how, version_from_file_name(found.path)};
    }
    return std::nullopt;
}

}  // namespace

std::string CompilerVersion::text() const {
    return fmt::format("nvrtc{}.{}", major, minor);
}

const std::optional<NvrtcLocation>& nvrtc_location() {
    static const std::optional<NvrtcLocation> location = locate();
    return location;
}

std::optional<CompilerVersion> version_from_file_name(const std::string& path) {
    std::error_code ignored;
    fs::path real = fs::canonical(path, ignored);
    if (real.empty()) real = path;
    const NameVersion own = version_after(real.filename().string(), kLibraryPrefix);
    if (own.major && own.minor) return CompilerVersion{*own.major, *own.minor};
    const std::vector<fs::path> builtins = builtins_beside(real, own.major);
    std::optional<CompilerVersion> version;
    for (const fs::path& each : builtins) {
        const NameVersion its = version_after(each.filename().string(), kBuiltinsPrefix);
        const CompilerVersion found = {*its.major, *its.minor};
        if (version && *version != found) return std::nullopt;  // which one is its own?
        version = found;
    }
    return version;
}

std::vector<std::string> refused_nvrtc(const std::string& used) {
    std::vector<std::string> texts;
    for (const FoundLibrary& each : candidates()) {
        if (each.path == used) break;
        if (!each.refusal.empty()) texts.push_back(text_of_refusal(kSearch, each));
    }
    return texts;
}

std::vector<std::string> passed_over_nvrtc(const std::string& used) {
    std::vector<std::string> paths;
    const int driver = driver_version();
    for (const FoundLibrary& each : find_libraries(kSearch)) {
        if (each.path == used) return is_too_new(each, driver) ? std::vector<std::string>() : paths;
        if (each.refusal.empty() && is_too_new(each, driver)) paths.push_back(each.path);
    }
    return {};
}

const Nvrtc& nvrtc() {
    static std::atomic<const Nvrtc*> opened{nullptr};
    if (const Nvrtc* table = opened.load(std::memory_order_acquire)) return *table;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (const Nvrtc* table = opened.load(std::memory_order_acquire)) return *table;
    opened.store(open_nvrtc(), std::memory_order_release);
    return *opened.load(std::memory_order_acquire);
}

}  // namespace jitney::runtime
