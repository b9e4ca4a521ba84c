#include "cache/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>

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

std::string absolute(const std::string& path) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    return error ? path : whole.string();
}

// Of a directory under any of its names.
std::string identity_of(const std::string& root) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(root + "/.", error);
    return error ? root : whole.lexically_normal().string();
}

void set_roots(Options& options) {
    const std::string list = environment("JITNEY_CACHE_DIR");
    if (!list.empty()) {
        // A directory that is named again is the layer that it is already.
        std::set<std::string> seen;
        for (std::size_t start = 0; start <= list.size();) {
            const std::size_t end = std::min(list.find(':', start), list.size());
            const std::string root = absolute(list.substr(start, end - start));
            const bool named = end != start && seen.insert(identity_of(root)).second;
            if (named && start == 0) options.private_root = root;
            if (named && start != 0) options.readonly_roots.push_back(root);
            start = end + 1;
        }
        return;
    }
    const std::string xdg = environment("XDG_CACHE_HOME");
    const std::string home = environment("HOME");
    if (xdg.starts_with('/')) {  // the XDG specification has relative paths ignored
        options.private_root = xdg + "/jitney";
    } else if (home.starts_with('/')) {
        options.private_root = home + "/.cache/jitney";
    } else if (options.warn) {
        options.warn(
            "no kernel cache on disk: none of JITNEY_CACHE_DIR, XDG_CACHE_HOME and HOME names a "
            "directory; set JITNEY_CACHE_DIR to keep compiled kernels");
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

Options Options::from_environment(Warn warn) {
    Options options;
    options.warn = std::move(warn);
    set_roots(options);
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
