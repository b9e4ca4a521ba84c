#include "runtime/dynamic_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "cache/trust.hpp"
#include "runtime/environment.hpp"
#include "runtime/loader_path.hpp"
#include "runtime/log.hpp"
#include "runtime/python_sites.hpp"

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

// What stands behind a place where a library is found.
enum class Word {
    believed,  // the user's environment, the system's loader, or that it runs already
    checked    // nothing but who may write there
};

class Finder {
  public:
    explicit Finder(const LibrarySearch& search) : search_(search) {}

    std::vector<FoundLibrary> run() {
        if (const auto path = environment(search_.variable)) {
            return {{*path, search_.variable}};
        }
        const fs::path own = directory_of_this_code();
        beside(own);
        loader();
        if (search_.toolkit) toolkits();
        if (!search_.packages.empty()) packages(own);
        return std::move(found_);
    }

  private:
    void add(const fs::path& path, const std::string& how, Word word) {
        std::error_code ignored;
        if (!fs::is_regular_file(path, ignored)) return;
        const std::string text = path.lexically_normal().string();
        for (const FoundLibrary& each : found_) {
            // What is believed is so, whether or not another step came upon it before.
            if (each.path == text && (each.refusal.empty() || word == Word::checked)) return;
        }
        std::string refusal;
        if (word == Word::checked) {
            refusal = cache::distrust_of_code(cache::FileSystem::posix(), path.string());
        }
        found_.push_back({text, how, word == Word::checked, refusal});
    }

    void directory(const fs::path& path, const std::string& how, Word word) {
        for (const char* soname : search_.sonames)
            add(path / soname, how, word);
    }

    void beside(const fs::path& own) {
        if (own.empty()) return;
        for (const char* place : {".", "../lib", "../cuda/lib", "../cuda/lib64"}) {
            directory(own / place, "beside the library", Word::checked);
        }
    }

    void loader() {
        for (const char* soname : search_.sonames) {
            if (const std::string path = path_of_loaded(soname); !path.empty()) {
                add(path, "already loaded", Word::believed);
            }
            for (const LoaderPath& each : paths_in_loader_directories(soname)) {
                add(each.path, "the loader's path",
                    each.of_run_path ? Word::checked : Word::believed);
            }
        }
    }

    void toolkits() {
        for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
            const auto root = environment(variable);
            if (root && fs::path(*root).is_absolute()) toolkit(*root, variable, Word::believed);
        }
        toolkit("/usr/local/cuda", "the toolkit", Word::checked);
        toolkit("/opt/cuda", "the toolkit", Word::checked);
    }

    void toolkit(const fs::path& root, const std::string& how, Word word) {
        for (const char* place :
             {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
            directory(root / place, how, word);
        }
    }

    void packages(const fs::path& own) {
        const PythonHints hints = PythonHints::of_this_process(own.string());
        for (const std::string& site : python_sites(hints)) {
            for (const char* place : search_.packages)
                directory(fs::path(site) / place, "a package of Python", Word::checked);
        }
        if (fs::path(hints.conda_prefix).is_absolute()) {
            toolkit(hints.conda_prefix, "CONDA_PREFIX", Word::checked);
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

// A full path, or a name alone, which the loader looks up. What lies between depends on where the
// process happens to stand.
bool is_relative(const std::string& path) {
    return path.find('/') != std::string::npos && !path.starts_with('/');
}

void warn_once(const std::string& text) {
    static std::mutex mutex;
    static std::set<std::string>& said = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (said.insert(text).second) log::warn(text);
}

// Opens it; nothing, and why, where it can't be or is of no use.
DynamicLibrary open_one(const std::string& path, const Objection& objection, std::string* error) {
    DynamicLibrary library = DynamicLibrary::open(path, error);
    if (!library || !objection) return library;
    *error = objection(library);
    return error->empty() ? std::move(library) : DynamicLibrary();
}

}  // namespace

std::string text_of_refusal(const LibrarySearch& search, const FoundLibrary& refused) {
    return fmt::format(
        "{} ({}) is not used, since others could have put their code there: it {}; remove it, or "
        "mend owner and mode (chmod go-w), or set {} to its full path if you trust it",
        refused.path, refused.how, refused.refusal, search.variable);
}

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

OpenedLibrary open_library(const LibrarySearch& search, const std::vector<FoundLibrary>& found,
                           const Objection& objection) {
    OpenedLibrary opened;
    std::string failures;
    const auto note = [&failures](const std::string& failure) {
        failures += fmt::format("{}{}", failures.empty() ? "" : "; ", failure);
    };
    const bool named = environment(search.variable).has_value();
    bool refused = false;
    for (const FoundLibrary& each : found) {
        std::string error;
        if (!each.refusal.empty()) {
            refused = true;
            warn_once(text_of_refusal(search, each));
            note(fmt::format("{} {}", each.path, each.refusal));
        } else if (named && is_relative(each.path)) {
            note("it is not a full path");
        } else if ((opened.library = open_one(each.path, objection, &error))) {
            opened.found = each;
            return opened;
        } else {
            note(error);
        }
    }
    if (named) {
        opened.error = fmt::format(
            "{} is \"{}\", which can't be opened ({}): set it to the full path of {}, or unset it",
            search.variable, found.front().path, failures, sonames_text(search));
        return opened;
    }
    // What the loader knows beyond the directories above. It looks into the run path of this code
    // as well, and so would open what was refused.
    for (const char* soname : search.sonames) {
        if (refused) break;
        std::string error;
        opened.library = open_one(soname, objection, &error);
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
