#include "cache/trust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace jitney::cache {

namespace {

constexpr int kLook = O_PATH | O_NOFOLLOW;
constexpr int kMostLinks = 40;  // as many as the kernel follows
constexpr int kMostAttempts = 3;

bool is_trusted_owner(FileSystem& files, uid_t owner) {
    return owner == files.user() || owner == 0;
}

// Others than its owner, the superuser and whom the owner is alone with in a group.
bool others_can_write(FileSystem& files, const struct stat& status, int file) {
    if ((status.st_mode & 002U) != 0) return true;
    if ((status.st_mode & 020U) == 0) return false;
    return file < 0 || !files.is_alone_in_group(status.st_gid) || files.has_access_list(file);
}

std::string joined(const std::string& directory, const std::string& name) {
    return directory == "/" ? directory + name : directory + "/" + name;
}

class Walker {
  public:
    Walker(FileSystem& files, Walk walk) : files_(files), walk_(walk) {}

    Reached run(const std::string& path) {
        if (!path.starts_with('/')) {
            result_.refusal = "is no absolute path";
            return std::move(result_);
        }
        push(path, false);
        if (to_root()) {
            while (!steps_.empty() && step()) {
            }
        }
        return std::move(result_);
    }

  private:
    struct Step {
        std::string name;
        bool of_link = false;
    };

    // Puts the names of the path before those that are still to come.
    void push(const std::string& path, bool of_link) {
        std::vector<Step> names;
        for (std::size_t start = 0; start < path.size();) {
            const std::size_t end = std::min(path.find('/', start), path.size());
            std::string name = path.substr(start, end - start);
            if (!name.empty() && name != ".") names.push_back({std::move(name), of_link});
            start = end + 1;
        }
        for (auto name = names.rbegin(); name != names.rend(); ++name)
            steps_.push_back(std::move(*name));
    }

    bool fail(int error) {
        result_.handle = Handle();
        result_.error = error;
        return false;
    }

    bool refuse(std::string why) {
        result_.handle = Handle();
        result_.refusal = std::move(why);
        return false;
    }

    bool to_root() {
        Handle root = open_file(files_, AT_FDCWD, "/", kLook | O_DIRECTORY);
        struct stat status {};
        if (!root || files_.stat(root.get(), &status) != 0) return fail(errno);
        return arrive(std::move(root), status, "/");
    }

    // At what may be the end, or a directory above it.
    bool arrive(Handle handle, const struct stat& status, const std::string& path) {
        if (steps_.empty()) {
            result_.handle = std::move(handle);
            result_.status = status;
            return true;
        }
        if (!S_ISDIR(status.st_mode)) return fail(ENOTDIR);
        if (!walk_.vouched) {
            const std::string why = distrust_above(status, handle.get());
            if (!why.empty()) return refuse(fmt::format("lies below {}, which {}", path, why));
        }
        result_.directory = std::move(handle);
        result_.directory_path = path;
        result_.shared_directory = others_can_write(files_, status, result_.directory.get());
        return true;
    }

    // Where the sticky bit is set, others can add names, and can neither remove nor replace one
    // that is the user's or the superuser's, as the next step has to be.
    std::string distrust_above(const struct stat& status, int file) const {
        struct stat seen = status;
        if (S_ISDIR(seen.st_mode) && (seen.st_mode & S_ISVTX) != 0) seen.st_mode &= ~022U;
        return distrust(files_, seen, Owner::user_or_superuser, file);
    }

    bool step() {
        const Step next = std::move(steps_.back());
        steps_.pop_back();
        Handle opened = open_next(next.name);
        if (!opened && errno == ENOENT) {
            if (!walk_.create || next.of_link) {
                result_.at_link = next.of_link;
                return fail(ENOENT);
            }
            if (files_.mkdir(result_.directory.get(), next.name.c_str(), 0700) != 0 &&
                errno != EEXIST) {
                result_.creating = true;
                return fail(errno);
            }
            opened = open_next(next.name);
        }
        if (!opened) return fail(errno);
        struct stat status {};
        if (files_.stat(opened.get(), &status) != 0) return fail(errno);
        if (S_ISLNK(status.st_mode)) return follow(opened, status, next.name);
        return arrive(std::move(opened), status, path_of(next.name));
    }

    // O_DIRECTORY, where it is one, has an automounted directory mounted.
    Handle open_next(const std::string& name) {
        Handle opened = open_file(files_, result_.directory.get(), name, kLook | O_DIRECTORY);
        if (!opened && (errno == ENOTDIR || errno == ELOOP)) {
            opened = open_file(files_, result_.directory.get(), name, kLook);
        }
        return opened;
    }

    std::string path_of(const std::string& name) const {
        const std::string& above = result_.directory_path;
        if (name != "..") return joined(above, name);
        return above.substr(0, std::max<std::size_t>(above.rfind('/'), 1));
    }

    bool follow(const Handle& link, const struct stat& status, const std::string& name) {
        if (!walk_.vouched && !is_trusted_owner(files_, status.st_uid)) {
            return refuse(fmt::format("leads through {}, a symbolic link of user {}", path_of(name),
                                      status.st_uid));
        }
        if (++links_ > kMostLinks) return fail(ELOOP);
        std::string target;
        if (files_.read_link(link.get(), &target) != 0) return fail(errno);
        if (target.empty()) return fail(ENOENT);
        push(target, true);
        if (target.starts_with('/')) return to_root();
        if (steps_.empty()) steps_.push_back({".", true});  // the directory that the link lies in
        return true;
    }

    FileSystem& files_;
    const Walk walk_;
    std::vector<Step> steps_;  // the next one is the last
    int links_ = 0;
    Reached result_;
};

// Whether the walk failed since the directory that it stood in was deleted under it.
bool was_deleted_under(FileSystem& files, const Reached& reached) {
    struct stat status {};
    return reached.creating && reached.error == ENOENT && reached.directory &&
           files.stat(reached.directory.get(), &status) == 0 && status.st_nlink == 0;
}

}  // namespace

std::string distrust(FileSystem& files, const struct stat& status, Owner owner, int file) {
    const uid_t user = files.user();
    const bool superuser = owner == Owner::user_or_superuser && status.st_uid == 0;
    if (status.st_uid != user && !superuser) {
        return fmt::format("belongs to user {}, not to user {}", status.st_uid, user);
    }
    if (others_can_write(files, status, file)) {
        return fmt::format("can be written by others (mode {:04o})", status.st_mode & 07777U);
    }
    return {};
}

Reached walk_to(FileSystem& files, const std::string& path, Walk walk) {
    Reached reached = Walker(files, walk).run(path);
    for (int attempt = 1; attempt < kMostAttempts && was_deleted_under(files, reached); ++attempt)
        reached = Walker(files, walk).run(path);
    return reached;
}

std::string distrust_of_code(FileSystem& files, const std::string& path) {
    const Reached reached = walk_to(files, path);
    if (!reached.refusal.empty()) return reached.refusal;
    if (!reached.handle) return "can't be opened: " + error_text(reached.error);
    if (!S_ISREG(reached.status.st_mode)) return "is not a regular file";
    // A name that others put there may be a second one of a file of the superuser's.
    if (reached.shared_directory) {
        return fmt::format("lies in {}, where others can put files", reached.directory_path);
    }
    return distrust(files, reached.status, Owner::user_or_superuser, reached.handle.get());
}

}  // namespace jitney::cache
