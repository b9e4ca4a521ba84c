#include "cache/lock.hpp"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace jitney::cache {

namespace {

constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

int try_lock(FileSystem& files, int file) {
    return retry_interrupted([&] { return files.flock(file, LOCK_EX | LOCK_NB); });
}

// Whoever releases a lock removes its file first: a lock counts only while its file has the name.
bool has_the_name(FileSystem& files, int shard, const std::string& name, int file) {
    struct stat held {};
    struct stat named {};
    return files.stat(file, &held) == 0 && files.stat_at(shard, name.c_str(), &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace

bool KeyLock::acquire(Layer& layer, const Digest& digest, std::chrono::milliseconds timeout) {
    using Clock = std::chrono::steady_clock;
    files_ = &layer.files();
    name_ = std::string(kLockPrefix) + digest.hex();
    shard_ = layer.open_shard(digest.hex().substr(0, 2), true);
    if (!shard_) return false;
    const auto deadline = Clock::now() + timeout;
    auto pause = std::chrono::milliseconds(1);
    constexpr auto kLongestPause = std::chrono::milliseconds(50);
    constexpr int kMostReopenings = 100;  // then something is wrong with the directory
    int reopenings = 0;
    while (true) {
        if (!file_) {
            file_ = open_file(*files_, shard_.get(), name_, kFlags | O_CREAT, 0600);
            struct stat status {};
            if (!file_ || files_->stat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
                !layer.distrust(status).empty()) {
                file_ = Handle();
                return false;
            }
        }
        if (try_lock(*files_, file_.get()) == 0) {
            if (has_the_name(*files_, shard_.get(), name_, file_.get())) return true;
            file_ = Handle();
            pause = std::chrono::milliseconds(1);
            if (++reopenings > kMostReopenings) return false;
        } else if (errno != EWOULDBLOCK) {
            layer.warnings().once(
                fmt::format("no locks in cache directory {} ({}): processes that start together "
                            "may compile the same kernel",
                            layer.root(), error_text(errno)));
            file_ = Handle();
            return false;
        }
        const auto left = deadline - Clock::now();
        if (left <= Clock::duration::zero()) {
            file_ = Handle();
            return false;
        }
        std::this_thread::sleep_for(std::min<Clock::duration>(pause, left));
        pause = std::min(2 * pause, kLongestPause);
    }
}

void KeyLock::release() {
    if (!file_) return;
    files_->unlink(shard_.get(), name_.c_str());
    // Closing alone would leave the lock to a child that was forked meanwhile.
    files_->flock(file_.get(), LOCK_UN);
    file_ = Handle();
}

void KeyLock::reap(Layer& layer, const Handle& shard, const std::string& name) {
    FileSystem& files = layer.files();
    const Handle file = open_file(files, shard.get(), name, kFlags);
    if (file && try_lock(files, file.get()) == 0 &&
        has_the_name(files, shard.get(), name, file.get())) {
        files.unlink(shard.get(), name.c_str());
    }
}

}  // namespace jitney::cache
