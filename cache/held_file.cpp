#include "cache/held_file.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/file_io.hpp"

namespace jitney::cache {

namespace {

// fork waits while one of them is being opened or closed, so that none is missed.
struct HeldFiles {
    std::mutex mutex;
    std::vector<int*> all;

    HeldFiles() { ::pthread_atfork(lock, unlock, close_all); }

    static HeldFiles& instance() {
        // Never destroyed: a fork may come while the program ends.
        static HeldFiles& held = *new HeldFiles;
        return held;
    }

    static void lock() { instance().mutex.lock(); }
    static void unlock() { instance().mutex.unlock(); }
    static void close_all() {
        HeldFiles& held = instance();
        for (int* const file : held.all)
            ::close(std::exchange(*file, -1));
        held.all.clear();
        held.mutex.unlock();
    }
};

}  // namespace

HeldFile& HeldFile::operator=(HeldFile&& other) noexcept {
    if (this != &other) {
        close();
        files_ = other.files_;
        file_ = std::move(other.file_);
    }
    return *this;
}

HeldFile HeldFile::open(FileSystem& files, int directory, const std::string& name, int flags,
                        mode_t mode) {
    HeldFiles& held = HeldFiles::instance();
    HeldFile opened;
    opened.files_ = &files;
    opened.file_ = std::make_unique<int>(-1);
    const std::lock_guard guard(held.mutex);
    held.all.reserve(held.all.size() + 1);
    *opened.file_ =
        retry_interrupted([&] { return files.open(directory, name.c_str(), flags, mode); });
    if (*opened.file_ >= 0) held.all.push_back(opened.file_.get());
    return opened;
}

int HeldFile::close() {
    if (get() < 0) return 0;
    const int saved = errno;
    HeldFiles& held = HeldFiles::instance();
    int failed = 0;
    {
        const std::lock_guard guard(held.mutex);
        std::erase(held.all, file_.get());
        // After EINTR Linux has closed the descriptor all the same.
        if (files_->close(std::exchange(*file_, -1)) != 0 && errno != EINTR) failed = errno;
    }
    errno = saved;
    return failed;
}

}  // namespace jitney::cache
