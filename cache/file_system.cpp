#include "cache/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace jitney::cache {

namespace {

// The signal of a write past the limit (ulimit -f) goes to the thread that writes, and ends the
// process unless that deals with it. A library may not change what the process does on a signal, so
// it is held back in this thread for the write, and taken where the write has raised it.
class FileSizeSignal {
  public:
    FileSizeSignal() {
        ::sigemptyset(&signal_);
        ::sigaddset(&signal_, SIGXFSZ);
        sigset_t pending;
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
        held_back_ = ::pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
    }
    FileSizeSignal(const FileSizeSignal&) = delete;
    FileSizeSignal& operator=(const FileSizeSignal&) = delete;
    ~FileSizeSignal() {
        if (!held_back_) return;
        const int saved = errno;
        const timespec at_once{};
        if (saved == EFBIG && !was_pending_) ::sigtimedwait(&signal_, nullptr, &at_once);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = saved;
    }

  private:
    sigset_t signal_{};
    sigset_t before_{};
    bool was_pending_ = false;
    bool held_back_ = false;
};

}  // namespace

FileSystem::~FileSystem() = default;

int FileSystem::open(int directory, const char* name, int flags, mode_t mode) {
    return ::openat(directory, name, flags | O_CLOEXEC, mode);
}

int FileSystem::close(int file) {
    return ::close(file);
}

ssize_t FileSystem::read(int file, void* bytes, std::size_t count) {
    return ::read(file, bytes, count);
}

ssize_t FileSystem::write(int file, const void* bytes, std::size_t count) {
    const FileSizeSignal held_back;
    return ::write(file, bytes, count);
}

int FileSystem::fsync(int file) {
    return ::fsync(file);
}

int FileSystem::rename(int directory, const char* from, const char* to) {
    return ::renameat(directory, from, directory, to);
}

int FileSystem::unlink(int directory, const char* name) {
    return ::unlinkat(directory, name, 0);
}

int FileSystem::mkdir(int directory, const char* name, mode_t mode) {
    return ::mkdirat(directory, name, mode);
}

int FileSystem::rmdir(int directory, const char* name) {
    return ::unlinkat(directory, name, AT_REMOVEDIR);
}

int FileSystem::read_link(int link, std::string* target) {
    std::array<char, PATH_MAX> text{};
    const ssize_t bytes = ::readlinkat(link, "", text.data(), text.size());
    if (bytes < 0) return -1;
    if (static_cast<std::size_t>(bytes) == text.size()) {
        errno = ENAMETOOLONG;
        return -1;
    }
    target->assign(text.data(), static_cast<std::size_t>(bytes));
    return 0;
}

int FileSystem::stat(int file, struct stat* result) {
    return ::fstat(file, result);
}

int FileSystem::stat_at(int directory, const char* name, struct stat* result) {
    return ::fstatat(directory, name, result, AT_SYMLINK_NOFOLLOW);
}

int FileSystem::list(int directory, std::vector<std::string>* names) {
    // A descriptor of its own: the position of the held one is shared with forked children.
    const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) return -1;
    DIR* const stream = ::fdopendir(own);
    if (stream == nullptr) {
        const int error = errno;
        ::close(own);
        errno = error;
        return -1;
    }
    errno = 0;
    while (const dirent* const item = ::readdir(stream)) {
        const std::string name = item->d_name;
        if (name != "." && name != "..") names->push_back(name);
        errno = 0;
    }
    const int error = errno;
    ::closedir(stream);
    errno = error;
    return error == 0 ? 0 : -1;
}

int FileSystem::touch(int file) {
    const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    return ::futimens(file, times);
}

int FileSystem::flock(int file, int operation) {
    return ::flock(file, operation);
}

uid_t FileSystem::user() {
    return ::geteuid();
}

bool FileSystem::is_alone_in_group(gid_t group) {
    const uid_t own = user();
    if (own == 0) return false;
    std::array<char, 16384> passwd_text{};
    std::array<char, 16384> group_text{};
    passwd person{};
    ::group members{};
    passwd* found_person = nullptr;
    ::group* found_group = nullptr;
    if (::getpwuid_r(own, &person, passwd_text.data(), passwd_text.size(), &found_person) != 0 ||
        found_person == nullptr || person.pw_gid != group ||
        ::getgrgid_r(group, &members, group_text.data(), group_text.size(), &found_group) != 0 ||
        found_group == nullptr || std::strcmp(members.gr_name, person.pw_name) != 0) {
        return false;
    }
    for (char** member = members.gr_mem; *member != nullptr; ++member) {
        if (std::strcmp(*member, person.pw_name) != 0) return false;
    }
    return true;
}

bool FileSystem::has_access_list(int file) {
    // By its name in /proc: a descriptor of O_PATH has no attributes of its own.
    const std::string name = "/proc/self/fd/" + std::to_string(file);
    if (::getxattr(name.c_str(), "system.posix_acl_access", nullptr, 0) >= 0) return true;
    return errno != ENODATA && errno != EOPNOTSUPP;
}

std::int64_t FileSystem::now() {
    return std::time(nullptr);
}

FileSystem& FileSystem::posix() {
    // Never destroyed: a cache may outlive the destructors of other static objects.
    static FileSystem& file_system = *new FileSystem;
    return file_system;
}

}  // namespace jitney::cache
