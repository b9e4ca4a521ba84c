// The system calls that the cache makes, one virtual function each, so that a test can make any of
// them fail. Each returns what the call returns: -1 and errno for an error.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jitney::cache {

class FileSystem {
  public:
    FileSystem() = default;
    FileSystem(const FileSystem&) = delete;
    FileSystem& operator=(const FileSystem&) = delete;
    virtual ~FileSystem();

    // `directory` is a file descriptor or AT_FDCWD; O_CLOEXEC is always added.
    virtual int open(int directory, const char* name, int flags, mode_t mode);
    virtual int close(int file);
    virtual ssize_t read(int file, void* bytes, std::size_t count);
    // Past the process's limit for files it fails with EFBIG: no SIGXFSZ comes of it.
    virtual ssize_t write(int file, const void* bytes, std::size_t count);
    virtual int fsync(int file);
    virtual int rename(int directory, const char* from, const char* to);
    virtual int unlink(int directory, const char* name);
    virtual int mkdir(int directory, const char* name, mode_t mode);
    virtual int rmdir(int directory, const char* name);
    // Of the symbolic link that `link` was opened as (O_PATH | O_NOFOLLOW).
    virtual int read_link(int link, std::string* target);
    virtual int stat(int file, struct stat* result);
    // Of the name itself: a symbolic link is not followed.
    virtual int stat_at(int directory, const char* name, struct stat* result);
    // The names in a directory, without . and ..
    virtual int list(int directory, std::vector<std::string>* names);
    // Sets the modification time to now.
    virtual int touch(int file);
    virtual int flock(int file, int operation);
    virtual uid_t user();
    // Whether the group is the user's private one: that of the user's name, with nobody else in it.
    // Never of the superuser, who shares groups.
    virtual bool is_alone_in_group(gid_t group);
    // Whether users or groups are named beside owner, group and others; true where that isn't told.
    virtual bool has_access_list(int file);
    virtual std::int64_t now();  // seconds since 1970

    static FileSystem& posix();
};

}  // namespace jitney::cache
