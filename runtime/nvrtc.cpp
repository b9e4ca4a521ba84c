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

#include "jitney/error.hpp"
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
    "install libnvrtc of CUDA 12 or 13, set JITNEY_LIBNVRTC to its full path, or fill the cache "
    "ahead with jitney prewarm where it is installed";

constexpr LibrarySearch kSearch = {
    .name = "NVRTC", .variable = "JITNEY_LIBNVRTC", .sonames = kSonames, .toolkit = true};

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

template <class Function>
bool resolve(const DynamicLibrary& library, const char* symbol, Function& function) {
    void* address = library.symbol(symbol);
    std::memcpy(&function, &address, sizeof function);
    return address != nullptr;
}

void fill(const DynamicLibrary& library, Nvrtc& table) {
    std::string missing;
#define JITNEY_RESOLVE(function) \
    if (!resolve(library, #function, table.function) && missing.empty()) missing = #function;
    JITNEY_NVRTC_FUNCTIONS(JITNEY_RESOLVE)
#undef JITNEY_RESOLVE
    if (!missing.empty()) {
        throw Error(ErrorCode::no_compiler, fmt::format("{} has no {}, so it is no NVRTC: {}",
                                                        library.path(), missing, kMend));
    }
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
    const auto start = std::chrono::steady_clock::now();
    OpenedLibrary opened = open_library(kSearch);
    if (!opened.library) {
        // Where the variable names it, the error says already what to set it to.
        const bool named = environment(kSearch.variable).has_value();
        throw Error(ErrorCode::no_compiler,
                    fmt::format("NVRTC can't be opened: {}{}", opened.error,
                                named ? std::string(", or fill the cache ahead with jitney prewarm "
                                                    "where NVRTC is installed")
                                      : fmt::format("; {}", kMend)));
    }
    auto table = std::make_unique<Nvrtc>();
    table->path = opened.found.path;
    fill(opened.library, *table);
    table->nvrtcVersion(&table->version.major, &table->version.minor);
    if (table->version.major < kOldest.major) {
        throw Error(ErrorCode::no_compiler,
                    fmt::format("{} is NVRTC {}.{}, older than {}.{}: {}", table->path,
                                table->version.major, table->version.minor, kOldest.major,
                                kOldest.minor, kMend));
    }
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
    for (const FoundLibrary& found : find_libraries(kSearch)) {
        std::error_code ignored;
        if (!fs::is_regular_file(found.path, ignored)) continue;
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
