#include "cache/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "cache/entry.hpp"

namespace jitney::cache {

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr mode_t kPrivateMode = 0700;

std::string without_trailing_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    return path;
}

// Of the process or the machine, and of no directory in particular.
bool is_passing(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

bool is_absence(int error) {
    return error == ENOENT || error == ESTALE;
}

// A file, a pipe or a link in the place of a directory stays there, and each start would compile
// what belongs into that directory.
std::string why_unopened(int error) {
    if (error == ENOTDIR || error == ELOOP)
        return "is a file, a pipe or a link and no directory: remove it";
    return "can't be opened: " + error_text(error);
}

}  // namespace

FileIdentity::FileIdentity(const struct stat& status)
    : device(status.st_dev),
      inode(status.st_ino),
      bytes(static_cast<std::uint64_t>(status.st_size)),
      modified(status.st_mtim.tv_sec),
      modified_detail(status.st_mtim.tv_nsec) {}

Layer::Layer(FileSystem& files, std::string root, Role role, Warnings& warnings, bool vouched)
    : files_(files),
      root_(without_trailing_slashes(std::move(root))),
      role_(role),
      warnings_(warnings),
      vouched_(vouched) {}

std::string Layer::distrust(const struct stat& status, int file) const {
    if (vouched_) return {};
    return cache::distrust(files_, status,
                           role_ == Role::writable ? Owner::user : Owner::user_or_superuser, file);
}

std::string Layer::refusal() const {
    const std::lock_guard guard(mutex_);
    return refusal_;
}

std::string Layer::mend() const {
    const std::lock_guard guard(mutex_);
    return mend_;
}

std::shared_ptr<const Handle> Layer::refuse(const std::string& why) {
    refusal_ = why;
    const char* const consequence =
        role_ == Role::writable ? "compiled kernels are not kept" : "it is left out";
    warnings_.once(fmt::format("cache directory {} is not used: it {}; {}{}{}", root_, why,
                               consequence, mend_.empty() ? "" : ". To mend that, ", mend_));
    return nullptr;
}

std::shared_ptr<const Handle> Layer::distrusted(const std::string& why) {
    mend_ = fmt::format(
        "chmod go-w what is yours, or let JITNEY_CACHE_DIR name a directory of your own; only "
        "where neither can be, and all who can write there may run code as you, let "
        "JITNEY_CACHE_TRUST name {}",
        root_);
    return refuse(why);
}

std::string Layer::trouble() const {
    const std::lock_guard guard(mutex_);
    return trouble_;
}

void Layer::warn_passing(int error) {
    trouble_ = "can't be opened for now: " + error_text(error);
    warnings_.once(
        fmt::format("cache directory {} can't be opened for now: {}", root_, error_text(error)));
}

std::shared_ptr<const Handle> Layer::open(bool create) {
    const std::lock_guard guard(mutex_);
    if (!refusal_.empty()) return nullptr;
    if (directory_) {
        // A directory that was deleted stays usable to its holders, but nothing can be put in it.
        struct stat status {};
        if (files_.stat(directory_->get(), &status) == 0 && status.st_nlink > 0) return directory_;
        directory_ = nullptr;
    }
    trouble_.clear();
    directory_ = open_checked(create && role_ == Role::writable);
    return directory_;
}

std::shared_ptr<const Handle> Layer::open_checked(bool create) {
    const Reached reached = walk_to(files_, root_, {create, vouched_});
    if (!reached.refusal.empty()) return distrusted(reached.refusal);
    if (!reached.handle) return refuse_unreached(reached, create);
    if (!S_ISDIR(reached.status.st_mode)) return refuse_error("can't be opened: ", ENOTDIR);
    if (const std::string why = distrust(reached.status, reached.handle.get()); !why.empty()) {
        return distrusted(why);
    }
    Handle opened = open_file(files_, reached.handle.get(), ".", kDirectory);
    if (opened) return std::make_shared<const Handle>(std::move(opened));
    return refuse_error("can't be opened: ", errno);
}

std::shared_ptr<const Handle> Layer::refuse_unreached(const Reached& reached, bool create) {
    if (reached.creating) {
        return refuse_error(fmt::format("can't be created in {}: ", reached.directory_path),
                            reached.error);
    }
    if (reached.at_link && create) {
        return refuse("can't be created: it leads through a symbolic link to what does not exist");
    }
    if (reached.error == ENOENT || reached.error == ESTALE) return nullptr;
    return refuse_error("can't be opened: ", reached.error);
}

std::shared_ptr<const Handle> Layer::refuse_error(const std::string& what, int error) {
    if (!is_passing(error)) return refuse(what + error_text(error));
    warn_passing(error);
    errno = error;
    return nullptr;
}

Handle Layer::open_shard(const std::string& shard, bool create, std::string* why) {
    std::string ignored;
    std::string& reason = why != nullptr ? *why : ignored;
    const auto directory = open(create);
    if (!directory) {
        reason = refusal();
        if (reason.empty()) reason = trouble();
        return {};
    }
    const auto refuse_shard = [&](const std::string& its_reason, int error) {
        reason = its_reason;
        warnings_.once(
            fmt::format("cache directory {}/{} is not used: it {}", root_, shard, reason));
        errno = error;
        return Handle();
    };
    constexpr int kFlags = kDirectory | O_NOFOLLOW;
    Handle opened = open_file(files_, directory->get(), shard, kFlags);
    if (!opened && errno == ENOENT && create) {
        if (files_.mkdir(directory->get(), shard.c_str(), kPrivateMode) == 0) {
            // So that the new name survives a power cut; nothing is wrong if it does not.
            files_.fsync(directory->get());
        } else if (errno != EEXIST) {
            return {};
        }
        opened = open_file(files_, directory->get(), shard, kFlags);
    }
    if (!opened) {
        const int error = errno;
        if (is_absence(error)) return {};
        return refuse_shard(why_unopened(error), error);
    }
    struct stat status {};
    if (files_.stat(opened.get(), &status) != 0)
        return refuse_shard("can't be examined: " + error_text(errno), errno);
    if (const std::string distrusted = distrust(status, opened.get()); !distrusted.empty())
        return refuse_shard(distrusted, EPERM);
    return opened;
}

ReadFile Layer::read(const std::string& shard, const std::string& name, std::uint64_t limit) {
    ReadFile result;
    const Handle directory = open_shard(shard, false, &result.obstacle);
    if (!directory) return result;
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    result.file =
        open_file(files_, directory.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!result.file) {
        if (is_absence(errno)) return result;
        // A link says ELOOP, and is no error of reading.
        result.unreadable = errno != ELOOP;
        result.refusal = result.unreadable ? "can't be opened: " + error_text(errno)
                                           : std::string("is a symbolic link");
        return result;
    }
    struct stat status {};
    if (files_.stat(result.file.get(), &status) != 0) {
        result.unreadable = true;
        result.refusal = "can't be examined: " + error_text(errno);
    } else if (!S_ISREG(status.st_mode)) {
        result.refusal = "is not a regular file";
    } else if (role_ == Role::writable && status.st_nlink > 1) {
        // None at all is an entry that was replaced since it was opened: as good as ever.
        result.refusal = fmt::format("has {} names", status.st_nlink);
    } else if (FileIdentity(status).bytes > kMaxEntryBytes) {
        result.refusal = fmt::format("has {} bytes, more than any entry", status.st_size);
    } else {
        result.refusal = distrust(status, result.file.get());
    }
    if (!result.refusal.empty()) return result;
    result.identity = FileIdentity(status);
    // One byte more than there should be shows a file that grew.
    const std::uint64_t most = std::min(limit, result.identity.bytes + 1);
    if (!read_bytes(files_, result.file.get(), most, &result.bytes)) {
        result.bytes.clear();
        result.unreadable = errno != ESTALE;
        if (result.unreadable) result.refusal = "can't be read: " + error_text(errno);
        return result;
    }
    result.present = true;
    return result;
}

bool Layer::remove(const Handle& shard, const std::string& name, const FileIdentity& identity) {
    struct stat status {};
    if (files_.stat_at(shard.get(), name.c_str(), &status) != 0) return errno == ENOENT;
    if (FileIdentity(status) != identity) return false;
    return files_.unlink(shard.get(), name.c_str()) == 0 || errno == ENOENT;
}

}  // namespace jitney::cache
