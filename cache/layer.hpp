// One root directory of the cache, held open: what is done in it is done relative to descriptors
// that were checked, so that a directory swapped under its path is never followed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/file_io.hpp"
#include "cache/name.hpp"
#include "cache/trust.hpp"
#include "cache/warnings.hpp"

namespace jitney::cache {

// `writable` is the private root: everything in it must be the user's own. A read-only root may
// also belong to the superuser.
enum class Role { writable, readonly };

// The file that a name stood for when it was looked at.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified = 0;         // seconds
    std::int64_t modified_detail = 0;  // nanoseconds

    explicit FileIdentity(const struct stat& status);
    FileIdentity() = default;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct ReadFile {
    bool present = false;     // a file that may be read stood there, and was read
    std::string refusal;      // why the name was there and was not read; empty when it was absent
    bool unreadable = false;  // the refusal is an error of reading, and not what the file is
    std::string obstacle;     // why its directory is not used; a warning has said so
    std::string bytes;
    FileIdentity identity;
    Handle file;
};

class Layer {
  public:
    // `vouched`: the user answers for the directory by its name (JITNEY_CACHE_TRUST), so that
    // owners and modes of the directory, of what is above it and in it are not looked at.
    Layer(FileSystem& files, std::string root, Role role, Warnings& warnings, bool vouched = false);

    const std::string& root() const { return root_; }
    Role role() const { return role_; }
    bool vouched() const { return vouched_; }
    FileSystem& files() const { return files_; }
    Warnings& warnings() const { return warnings_; }

    // The root, opened and checked; null when it is absent or refused (refusal() then says why).
    std::shared_ptr<const Handle> open(bool create = false);
    std::string refusal() const;
    // What mends a refusal for want of trust; empty where it has another reason, or there is none.
    std::string mend() const;
    // Why the last open() failed for now, such as "can't be opened: Too many open files"; empty
    // where it did not.
    std::string trouble() const;

    // A shard of the root; an empty handle when it is absent, can't be made (errno), or is not
    // used: then `why` says so, as a warning has.
    Handle open_shard(const std::string& shard, bool create = false, std::string* why = nullptr);

    // Reads a file of a shard, or its first `limit` bytes, if it may be trusted.
    ReadFile read(const std::string& shard, const std::string& name,
                  std::uint64_t limit = UINT64_MAX);

    // Removes the name if it still stands for that file; true when it is gone.
    bool remove(const Handle& shard, const std::string& name, const FileIdentity& identity);

    // Why a file or directory with this status may not be trusted; empty if it may.
    std::string distrust(const struct stat& status, int file = -1) const;

  private:
    std::shared_ptr<const Handle> refuse(const std::string& why);
    std::shared_ptr<const Handle> distrusted(const std::string& why);
    std::shared_ptr<const Handle> refuse_error(const std::string& what, int error);
    std::shared_ptr<const Handle> refuse_unreached(const Reached& reached, bool create);
    std::shared_ptr<const Handle> open_checked(bool create);
    void warn_passing(int error);

    FileSystem& files_;
    const std::string root_;
    const Role role_;
    Warnings& warnings_;
    const bool vouched_;
    mutable std::mutex mutex_;
    std::shared_ptr<const Handle> directory_;
    std::string refusal_;
    std::string mend_;
    std::string trouble_;
};

}  // namespace jitney::cache
