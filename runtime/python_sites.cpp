#include "runtime/python_sites.hpp"

#include <link.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/environment.hpp"

namespace jitney::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPython = "python";

bool is_python(const fs::path& program) {
    return program.filename().string().starts_with(kPython);
}

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

// 11 of "python3.11"; -1 of any other name.
int minor_version(const fs::path& directory) {
    const std::string name = directory.filename().string();
    constexpr std::string_view prefix = "python3.";
    if (!name.starts_with(prefix)) return -1;
    int minor = -1;
    const char* const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), last, minor);
    return error == std::errc() && end == last ? minor : -1;
}

// The lib/python3.X of a directory, the newest first.
std::vector<fs::path> versions_in(const fs::path& lib) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator at(lib, error), end; !error && at != end; at.increment(error)) {
        if (minor_version(at->path()) >= 0) found.push_back(at->path());
    }
    std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
        return minor_version(a) > minor_version(b);
    });
    return found;
}

// The installation whose packages a virtual environment sees beside its own; empty where it sees
// none, or where the prefix is no virtual environment.
fs::path base_seen_from(const fs::path& prefix) {
    std::ifstream file(prefix / "pyvenv.cfg");
    bool sees_base = false;
    fs::path base;
    for (std::string line; std::getline(file, line);) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos) continue;
        const auto trimmed = [](const std::string& text) {
            const std::size_t first = text.find_first_not_of(" \t");
            const std::size_t last = text.find_last_not_of(" \t\r");
            return first == std::string::npos ? std::string()
                                              : text.substr(first, last - first + 1);
        };
        const std::string name = trimmed(line.substr(0, equals));
        const std::string value = trimmed(line.substr(equals + 1));
        if (name == "home") base = fs::path(value).parent_path();
        if (name == "include-system-site-packages") sees_base = value == "true";
    }
    return sees_base ? base : fs::path();
}

class Sites {
  public:
    explicit Sites(const PythonHints& hints) : hints_(hints) {}

    std::vector<std::string> run() {
        add_around(hints_.own_directory);
        const fs::path own_prefix = fs::path(hints_.own_directory).parent_path();
        if (is_there(own_prefix / "pyvenv.cfg")) add_prefix(own_prefix);
        if (is_python(hints_.program)) add_python_of_process();
        for (const std::string& file : hints_.loaded)
            add_around(file);
        add_prefix(hints_.virtual_environment);
        add_prefix(hints_.conda_prefix);
        add_first_on_path();
        return std::move(found_);
    }

  private:
    void add(const fs::path& site) {
        std::error_code ignored;
        const std::string text = site.lexically_normal().string();
        if (!fs::is_directory(site, ignored)) return;
        if (std::find(found_.begin(), found_.end(), text) == found_.end()) found_.push_back(text);
    }

    // The directory of packages that a path leads through.
    void add_around(const fs::path& path) {
        if (!path.is_absolute()) return;
        fs::path site;
        for (const fs::path& part : path) {
            site /= part;
            if (part == "site-packages" || part == "dist-packages") return add(site);
        }
    }

    // Those of an installation: prefix/lib/python3.X/site-packages.
    void add_prefix(const fs::path& prefix) {
        if (!prefix.is_absolute()) return;
        add_libraries(prefix);
        const fs::path base = base_seen_from(prefix);
        if (base.is_absolute()) add_installation(base);
    }

    void add_libraries(const fs::path& prefix) {
        for (const char* lib : {"lib", "lib64", "local/lib"}) {
            for (const fs::path& version : versions_in(prefix / lib)) {
                add(version / "site-packages");
                add(version / "dist-packages");
            }
        }
        add(prefix / "lib/python3/dist-packages");
    }

    // An installation of the system, beside which a user has packages of his own.
    void add_installation(const fs::path& prefix) {
        if (!hints_.user_base.empty()) {
            for (const fs::path& version : versions_in(fs::path(hints_.user_base) / "lib"))
                add(version / "site-packages");
        }
        add_libraries(prefix);
        // Debian's /usr/bin/python3 has what its user installs for all in /usr/local.
        if (prefix == "/usr") add_libraries("/usr/local");
    }

    // The prefix of an interpreter prefix/bin/python3: that of a virtual environment, whose
    // interpreter is a link, goes before that of the installation.
    void add_interpreter(const fs::path& interpreter) {
        const fs::path prefix = interpreter.parent_path().parent_path();
        if (is_there(prefix / "pyvenv.cfg")) return add_prefix(prefix);
        std::error_code ignored;
        const fs::path real = fs::canonical(interpreter, ignored);
        add_installation(prefix);
        if (!real.empty()) add_installation(real.parent_path().parent_path());
    }

    void add_python_of_process() {
        const fs::path called_as = hints_.called_as;
        if (called_as.is_absolute()) {
            add_interpreter(called_as);
        } else if (called_as.has_parent_path()) {
            std::error_code ignored;
            add_interpreter(fs::absolute(called_as, ignored));
        } else if (const fs::path found = on_path(called_as); !found.empty()) {
            add_interpreter(found);
        }
        add_interpreter(hints_.program);
    }

    // The first program of that name on PATH. A part of PATH that depends on the working directory
    // is left out.
    fs::path on_path(const fs::path& name) const {
        if (name.empty()) return {};
        for (const fs::path directory : hints_.search_path) {
            std::error_code ignored;
            if (directory.is_absolute() && fs::is_regular_file(directory / name, ignored)) {
                return directory / name;
            }
        }
        return {};
    }

    void add_first_on_path() {
        if (const fs::path found = on_path("python3"); !found.empty()) add_interpreter(found);
    }

    const PythonHints& hints_;
    std::vector<std::string> found_;
};

int note_loaded(dl_phdr_info* info, std::size_t, void* data) {
    auto* const loaded = static_cast<std::vector<std::string>*>(data);
    const std::string_view file = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    if (file.find("-packages/") != std::string_view::npos) loaded->emplace_back(file);
    return 0;
}

}  // namespace

PythonHints PythonHints::of_this_process(const std::string& own_directory) {
    PythonHints hints;
    hints.own_directory = own_directory;
    std::error_code ignored;
    hints.program = fs::read_symlink("/proc/self/exe", ignored).string();
    std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
    std::getline(arguments, hints.called_as, '\0');
    dl_iterate_phdr(note_loaded, &hints.loaded);
    hints.virtual_environment = environment("VIRTUAL_ENV").value_or("");
    hints.conda_prefix = environment("CONDA_PREFIX").value_or("");
    hints.user_base = environment("PYTHONUSERBASE").value_or("");
    if (const auto home = environment("HOME"); hints.user_base.empty() && home) {
        hints.user_base = *home + "/.local";
    }
    hints.search_path = parts_of_path(environment("PATH").value_or(""));
    return hints;
}

std::vector<std::string> python_sites(const PythonHints& hints) {
    return Sites(hints).run();
}

}  // namespace jitney::runtime
