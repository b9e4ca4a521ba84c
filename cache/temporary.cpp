#include "cache/temporary.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <vector>

#include "cache/lock.hpp"

namespace jitney::cache {

namespace {

// Unique without coordination, and never guessable enough to matter: O_EXCL refuses what is there.
std::string unique_name(std::string_view prefix) {
    static std::atomic<unsigned> counter{0};
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    return fmt::format("{}{}-{}-{:x}", prefix, ::getpid(), counter.fetch_add(1),
                       static_cast<std::uint64_t>(ticks));
}

// Far in the future is as stale as far in the past: a clock was wrong when the file was written.
bool is_stale(std::int64_t modified, std::int64_t now) {
    constexpr std::int64_t kDay = 24 * 3600;
    return modified < now - kStaleAfter || modified > now + kDay;
}

}  // namespace

bool is_temporary(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    int dashes = 0;
    bool digits = false;
    for (const char c : name) {
        if (c == '-' && digits && dashes < 2) {
            ++dashes;
            digits = false;
        } else if ((c >= '0' && c <= '9') || (dashes == 2 && c >= 'a' && c <= 'f')) {
            digits = true;
        } else {
            return false;
        }
    }
    return dashes == 2 && digits;
}

Temporary Temporary::create(FileSystem& files, int directory, const std::string& place,
                            std::string_view prefix, mode_t mode) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    for (int attempt = 0; attempt < 8; ++attempt) {
        Temporary made{place + unique_name(prefix), {}};
        made.file = HeldFile::open(files, directory, made.name, kFlags, mode);
        if (!made.file) {
            if (errno != EEXIST) return {};
            continue;
        }
        const LockTry tried = try_lock(files, directory, made.name, made.file.get());
        if (tried == LockTry::held || tried == LockTry::no_locks) return made;
        // Whoever looks for leftovers came between the two calls.
        if (tried == LockTry::busy) files.unlink(directory, made.name.c_str());
        errno = EBUSY;
    }
    return {};
}

Writer writer_of(FileSystem& files, int directory, const std::string& name, std::int64_t now,
                 bool remove) {
    const HeldFile file =
        HeldFile::open(files, directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!file) return errno == ENOENT ? Writer::gone : Writer::writing;
    struct stat status {};
    if (files.stat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return Writer::writing;
    const LockTry tried = try_lock(files, directory, name, file.get());
    if (tried == LockTry::gone) return Writer::gone;
    if (tried == LockTry::busy) return Writer::writing;
    if (tried == LockTry::no_locks && !is_stale(status.st_mtim.tv_sec, now)) return Writer::writing;
    if (!remove) return Writer::none;
    const bool removed = files.unlink(directory, name.c_str()) == 0 || errno == ENOENT;
    return removed ? Writer::gone : Writer::none;
}

void reap_bundles(FileSystem& files, const std::string& place) {
    const Handle directory =
        open_file(files, AT_FDCWD, place.empty() ? "." : place, O_RDONLY | O_DIRECTORY);
    std::vector<std::string> names;
    if (!directory || files.list(directory.get(), &names) != 0) return;
    for (const std::string& name : names) {
        struct stat status {};
        if (!is_temporary(name, kBundleTempPrefix)) continue;
        if (files.stat_at(directory.get(), name.c_str(), &status) != 0) continue;
        if (!S_ISREG(status.st_mode) || status.st_uid != files.user()) continue;
        writer_of(files, directory.get(), name, files.now(), true);
    }
}

}  // namespace jitney::cache
