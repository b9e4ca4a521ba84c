// Where the cache is and how large it may grow, from the environment or from the caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitney::cache {

class FileSystem;

using Warn = std::function<void(std::string_view)>;

struct Options {
    std::string private_root;  // read and written; empty: nothing is written
    std::vector<std::string> readonly_roots;
    // Those of the roots, by exactly these names, that the user answers for: they are used whoever
    // owns them or can write to them.
    std::vector<std::string> trusted_roots;
    std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of the private root
    // How long to wait for another thread or process that compiles the same key; zero: never wait.
    std::chrono::milliseconds lock_timeout{60000};
    // May be empty. A distinct fault is reported once. It must not call the Store.
    Warn warn;
    FileSystem* file_system = nullptr;  // null: the real one

    // Whether trusted_roots names the root; slashes and "." apart, names are compared as texts.
    bool trusts(std::string_view root) const;

    // JITNEY_CACHE_DIR (else XDG_CACHE_HOME/jitney, else HOME/.cache/jitney), JITNEY_CACHE_TRUST,
    // JITNEY_CACHE_MAX_BYTES and JITNEY_CACHE_LOCK_TIMEOUT_MS. A value that can't be meant is
    // reported and the default taken. In a set-user-id program the environment is not read.
    static Options from_environment(Warn warn = {});
};

// Why a value of the environment names no directory ("is not an absolute path"); empty if it does.
std::string why_no_directory(std::string_view path);

// 123, 64K, 512M or 2G.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace jitney::cache
