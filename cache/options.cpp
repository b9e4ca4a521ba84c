#include "cache/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

namespace jitney::cache {

namespace {

// Empty when it is not set, and always in a set-user-id program.
std::string environment(const char* name) {
    const char* const value = ::secure_getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    return number;
}

// Of a directory under any of its names.
std::string identity_of(const std::string& root) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(root + "/.", error);
    return error ? root : whole.lexically_normal().string();
}

// The parts of a text between its colons, empty ones too.
std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start <= list.size();) {
        const std::size_t end = std::min(list.find(':', start), list.size());
        parts.push_back(list.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

void say(const Options& options, const std::string& text) {
    if (options.warn) options.warn(text);
}

// Whether it names a directory; else it is reported.
bool is_directory_name(const Options& options, const char* variable, const std::string& path) {
    const std::string why = why_no_directory(path);
    if (why.empty()) return true;
    say(options, fmt::format("{} names \"{}\", which {}: it is not used; write the path in full",
                             variable, path, why));
    return false;
}

// The names in a path, but for those that lead nowhere else.
std::vector<std::string_view> names_in(std::string_view path) {
    std::vector<std::string_view> names;
    for (std::size_t start = 0; start < path.size();) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        const std::string_view name = path.substr(start, end - start);
        if (!name.empty() && name != ".") names.push_back(name);
        start = end + 1;
    }
    return names;
}

void set_named_roots(Options& options, const std::string& list) {
    // A directory that is named again is the layer that it is already.
    std::set<std::string> seen;
    bool first = true;
    for (const std::string& root : parts_of(list)) {
        const bool is_private = std::exchange(first, false);
        if (root.empty() || !is_directory_name(options, "JITNEY_CACHE_DIR", root)) continue;
        if (!seen.insert(identity_of(root)).second) continue;
        if (is_private) {
            options.private_root = root;
        } else {
            options.readonly_roots.push_back(root);
        }
    }
}

void set_roots(Options& options) {
    const std::string list = environment("JITNEY_CACHE_DIR");
    if (!list.empty()) return set_named_roots(options, list);
    const std::string xdg = environment("XDG_CACHE_HOME");
    const std::string home = environment("HOME");
    // The XDG specification has relative paths ignored.
    if (xdg.starts_with('/') && is_directory_name(options, "XDG_CACHE_HOME", xdg)) {
        options.private_root = xdg + "/jitney";
    } else if (home.starts_with('/') && is_directory_name(options, "HOME", home)) {
        options.private_root = home + "/.cache/jitney";
    } else {
        say(options,
            "no kernel cache on disk: none of JITNEY_CACHE_DIR, XDG_CACHE_HOME and HOME names a "
            "directory; set JITNEY_CACHE_DIR to keep compiled kernels");
    }
}

void set_trusted_roots(Options& options) {
    for (const std::string& root : parts_of(environment("JITNEY_CACHE_TRUST"))) {
        if (root.empty() || !is_directory_name(options, "JITNEY_CACHE_TRUST", root)) continue;
        if (root.find('*') != std::string::npos) {
            say(options, fmt::format("JITNEY_CACHE_TRUST names \"{}\": it takes no patterns, and "
                                     "trusts nothing by this one; name each directory",
                                     root));
            continue;
        }
        options.trusted_roots.push_back(root);
    }
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    unsigned shift = 0;
    if (!text.empty()) {
        switch (text.back()) {
            case 'k':
            case 'K':
                shift = 10;
                break;
            case 'm':
            case 'M':
                shift = 20;
                break;
            case 'g':
            case 'G':
                shift = 30;
                break;
            default:
                break;
        }
    }
    if (shift != 0) text.remove_suffix(1);
    const auto number = parse_number(text);
    if (!number || *number > (UINT64_MAX >> shift)) return std::nullopt;
    return *number << shift;
}

std::string why_no_directory(std::string_view path) {
    if (path.find('$') != std::string_view::npos) {
        return "has a $ that nothing has expanded (single quotes keep a shell from it)";
    }
    if (path.starts_with('~') || path.find("/~") != std::string_view::npos) {
        return "has a ~ that nothing has expanded (a shell does so only where it is not quoted, "
               "and "
               "at the start of a path)";
    }
    if (!path.starts_with('/')) return "is not an absolute path";
    return {};
}

bool Options::trusts(std::string_view root) const {
    const auto is_root = [names = names_in(root)](const std::string& trusted) {
        return names_in(trusted) == names;
    };
    return !root.empty() && std::any_of(trusted_roots.begin(), trusted_roots.end(), is_root);
}

Options Options::from_environment(Warn warn) {
    Options options;
    options.warn = std::move(warn);
    set_roots(options);
    set_trusted_roots(options);
    if (const std::string text = environment("JITNEY_CACHE_MAX_BYTES"); !text.empty()) {
        if (const auto bytes = parse_bytes(text)) {
            options.max_bytes = *bytes;
        } else if (options.warn) {
            options.warn(fmt::format(
                "JITNEY_CACHE_MAX_BYTES={} is not a size such as 1073741824, 512M or 2G; using {}",
                text, options.max_bytes));
        }
    }
    if (const std::string text = environment("JITNEY_CACHE_LOCK_TIMEOUT_MS"); !text.empty()) {
        constexpr std::uint64_t kDay = 24 * 3600 * 1000;
        const auto number = parse_number(text);
        if (number && *number <= kDay) {
            options.lock_timeout = std::chrono::milliseconds(*number);
        } else if (options.warn) {
            options.warn(
                fmt::format("JITNEY_CACHE_LOCK_TIMEOUT_MS={} is not a number of milliseconds "
                            "between 0 and {}; using {}",
                            text, kDay, options.lock_timeout.count()));
        }
    }
    return options;
}

}  // namespace jitney::cache
