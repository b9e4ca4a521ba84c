#include "runtime/dynamic_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/environment.hpp"
#include "runtime/loader_path.hpp"

namespace jitney::runtime {
namespace {

namespace fs = std::filesystem;

// The directory of the library or program that holds this code.
fs::path directory_of_this_code() {
    static const char anchor = 0;
    Dl_info info{};
    link_map* map = nullptr;
    std::error_code ignored;
    fs::path file;
    if (dladdr1(&anchor, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
        map != nullptr && map->l_name != nullptr && *map->l_name != '\0') {
        file = fs::canonical(map->l_name, ignored);
    } else {
        file = fs::read_symlink("/proc/self/exe", ignored);
    }
    return file.parent_path();
}

class Finder {
  public:
    explicit Finder(const LibrarySearch& search) : search_(search) {}

    std::vector<FoundLibrary> run() {
        if (const auto path = environment(search_.variable)) {
            return {{*path, search_.variable}};
        }
        beside_this_code();
        loader();
        if (search_.toolkit) toolkits();
        return std::move(found_);
    }

  private:
    void add(const fs::path& path, const std::string& how) {
        std::error_code ignored;
        if (!fs::is_regular_file(path, ignored)) return;
        const std::string text = path.lexically_normal().string();
        for (const FoundLibrary& each : found_) {
            if (each.path == text) return;
        }
        found_.push_back({text, how});
    }

    void directory(const fs::path& path, const std::string& how) {
        for (const char* soname : search_.sonames)
            add(path / soname, how);
    }

    void beside_this_code() {
        const fs::path own = directory_of_this_code();
        if (own.empty()) return;
        for (const char* place : {".", "../lib", "../cuda/lib", "../cuda/lib64"}) {
            directory(own / place, "beside the library");
        }
    }

    void loader() {
        for (const char* soname : search_.sonames) {
            if (const std::string path = path_of_loaded(soname); !path.empty()) {
                add(path, "already loaded");
            }
            for (const std::string& path : paths_in_loader_directories(soname)) {
                add(path, "the loader's path");
            }
        }
    }

    void toolkits() {
        for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
            if (const auto root = environment(variable)) toolkit(*root, variable);
        }
        toolkit("/usr/local/cuda", "the toolkit");
        toolkit("/opt/cuda", "the toolkit");
    }

    void toolkit(const fs::path& root, const std::string& how) {
        for (const char* place :
             {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
            directory(root / place, how);
        }
    }

    const LibrarySearch& search_;
    std::vector<FoundLibrary> found_;
};

std::string sonames_text(const LibrarySearch& search) {
    std::string text;
    for (const char* soname : search.sonames) {
        if (!text.empty()) text += " or ";
        text += soname;
    }
    return text;
}

}  // namespace

std::vector<FoundLibrary> find_libraries(const LibrarySearch& search) {
    return Finder(search).run();
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(path_, other.path_);
    return *this;
}

DynamicLibrary::~DynamicLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
}

DynamicLibrary DynamicLibrary::open(const std::string& path, std::string* error) {
    DynamicLibrary library;
    library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ == nullptr) {
        const char* reason = dlerror();
        *error = reason != nullptr ? reason : "unknown reason";
        return library;
    }
    library.path_ = path;
    return library;
}

void* DynamicLibrary::symbol(const char* name) const noexcept {
    return dlsym(handle_, name);
}

OpenedLibrary open_library(const LibrarySearch& search) {
    OpenedLibrary opened;
    const std::vector<FoundLibrary> found = find_libraries(search);
    std::string failures;
    for (const FoundLibrary& each : found) {
        std::string error;
        opened.library = DynamicLibrary::open(each.path, &error);
        if (opened.library) {
            opened.found = each;
            return opened;
        }
        failures += fmt::format("{}{}", failures.empty() ? "" : "; ", error);
    }
    if (environment(search.variable)) {
        opened.error = fmt::format(
            "{} is \"{}\", which can't be opened ({}): set it to the full path of {}, or unset it",
            search.variable, found.front().path, failures, sonames_text(search));
        return opened;
    }
    // What the loader knows beyond the directories above.
    for (const char* soname : search.sonames) {
        std::string error;
        opened.library = DynamicLibrary::open(soname, &error);
        if (opened.library) {
            opened.found = {soname, "the loader's path"};
            return opened;
        }
    }
    opened.error = failures.empty()
                       ? fmt::format("{} was found nowhere", sonames_text(search))
                       : fmt::format("{} can't be opened ({})", sonames_text(search), failures);
    return opened;
}

}  // namespace jitney::runtime
