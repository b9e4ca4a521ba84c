#include "cache/lock.hpp"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace jitney::cache {

namespace {

constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

}  // namespace

// Whoever removes a file has its lock: a lock counts only while its file has the name.
LockTry try_lock(FileSystem& files, int directory, const std::string& name, int file) {
    if (retry_interrupted([&] { return files.flock(file, LOCK_EX | LOCK_NB); }) != 0) {
        return errno == EWOULDBLOCK ? LockTry::busy : LockTry::no_locks;
    }
    struct stat held {};
    struct stat named {};
    const bool same = files.stat(file, &held) == 0 &&
                      files.stat_at(directory, name.c_str(), &named) == 0 &&
                      held.st_dev == named.st_dev && held.st_ino == named.st_ino;
    return same ? LockTry::held : LockTry::gone;
}

bool NamedLock::open(Layer& layer, int directory, const std::string& name) {
    file_ = HeldFile::open(*files_, directory, name, kFlags | O_CREAT, 0600);
    struct stat status {};
    if (file_ && files_->stat(file_.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        layer.distrust(status, file_.get()).empty()) {
        return true;
    }
    file_.close();
    return false;
}

bool NamedLock::acquire(Layer& layer, int directory, const std::string& name,
                        std::chrono::milliseconds timeout) {
    using Clock = std::chrono::steady_clock;
    files_ = &layer.files();
    const auto deadline = Clock::now() + timeout;
    auto pause = std::chrono::milliseconds(1);
    constexpr auto kLongestPause = std::chrono::milliseconds(50);
    constexpr int kMostReopenings = 100;  // then something is wrong with the directory
    int reopenings = 0;
    while (true) {
        if (!file_ && !open(layer, directory, name)) return false;
        const LockTry tried = try_lock(*files_, directory, name, file_.get());
        if (tried == LockTry::held) return true;
        if (tried == LockTry::gone) {
            file_.close();
            pause = std::chrono::milliseconds(1);
            if (++reopenings > kMostReopenings) return false;
        }
        if (tried == LockTry::no_locks) {
            layer.warnings().once(
                fmt::format("no locks in cache directory {} ({}): processes that start together "
                            "may compile the same kernel",
                            layer.root(), error_text(errno)));
            file_.close();
            return false;
        }
        const auto left = deadline - Clock::now();
        if (left <= Clock::duration::zero()) {
            file_.close();
            return false;
        }
        std::this_thread::sleep_for(std::min<Clock::duration>(pause, left));
        pause = std::min(2 * pause, kLongestPause);
    }
}

void NamedLock::release() {
    if (!file_) return;
    // Closing alone would leave the lock to a child that was made without fork's handlers.
    files_->flock(file_.get(), LOCK_UN);
    file_.close();
}

bool KeyLock::acquire(Layer& layer, const Digest& digest, std::chrono::milliseconds timeout) {
    files_ = &layer.files();
    name_ = std::string(kLockPrefix) + digest.hex();
    shard_ = layer.open_shard(digest.hex().substr(0, 2), true);
    return shard_ && lock_.acquire(layer, shard_.get(), name_, timeout);
}

void KeyLock::release() {
    if (!lock_) return;
    files_->unlink(shard_.get(), name_.c_str());
    lock_.release();
}

void KeyLock::reap(Layer& layer, const Handle& shard, const std::string& name) {
    FileSystem& files = layer.files();
    const HeldFile file = HeldFile::open(files, shard.get(), name, kFlags);
    if (file && try_lock(files, shard.get(), name, file.get()) == LockTry::held) {
        files.unlink(shard.get(), name.c_str());
    }
}

}  // namespace jitney::cache
