#include "cache/publish.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace jitney::cache {

AtomicFile::AtomicFile(FileSystem& files, int directory, const std::string& place, mode_t mode,
                       std::string_view prefix)
    : files_(files),
      directory_(directory),
      temp_(Temporary::create(files, directory, place, prefix, mode)),
      named_(static_cast<bool>(temp_.file)) {
    if (named_) file_ = open_file(files, directory, temp_.name, O_WRONLY | O_NOFOLLOW);
    if (!file_) fail("create a file", errno);
}

AtomicFile::~AtomicFile() {
    // In a forked child the file is the parent's.
    if (named_ && temp_.file) files_.unlink(directory_, temp_.name.c_str());
}

bool AtomicFile::fail(const char* what, int error) {
    if (error_.empty()) error_ = fmt::format("can't {}: {}", what, error_text(error));
    return false;
}

bool AtomicFile::write(std::string_view bytes) {
    if (!error_.empty()) return false;
    return write_bytes(files_, file_.get(), bytes) || fail("write", errno);
}

bool AtomicFile::commit(const std::string& name) {
    if (!error_.empty()) return false;
    // EINVAL and EOPNOTSUPP are those of a file system that has nothing to flush.
    if (retry_interrupted([&] { return files_.fsync(file_.get()); }) != 0 && errno != EINVAL &&
        errno != EOPNOTSUPP) {
        return fail("flush a file", errno);
    }
    if (const int error = file_.close(); error != 0) return fail("close a file", error);
    if (retry_interrupted(
            [&] { return files_.rename(directory_, temp_.name.c_str(), name.c_str()); }) != 0) {
        return fail("rename a file", errno);
    }
    named_ = false;
    temp_.file.close();
    return true;
}

namespace {

// A directory in the entry's place can't be replaced by a file; one without anything in it goes.
std::string clear_place(Layer& layer, const Handle& shard, const EntryName& name) {
    FileSystem& files = layer.files();
    const std::string file = name.file();
    struct stat status {};
    if (files.stat_at(shard.get(), file.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        files.rmdir(shard.get(), file.c_str()) == 0) {
        return {};
    }
    return fmt::format("has a directory in the place of an entry, {}/{}, that can't be removed: {}",
                       name.shard(), file, error_text(errno));
}

}  // namespace

Publication publish(Layer& layer, const EntryName& name, std::string_view bytes) {
    std::string error;
    // A second time for a directory that was deleted between its opening and the file's creation.
    for (int attempt = 0; attempt < 2; ++attempt) {
        std::string why;
        const Handle shard = layer.open_shard(name.shard(), true, &why);
        if (!shard) {
            const int open_error = errno;
            if (!why.empty()) return {};
            return {false, "can't open a directory: " + error_text(open_error)};
        }
        if (error = clear_place(layer, shard, name); !error.empty()) return {false, error};
        AtomicFile file(layer.files(), shard.get(), {}, 0600);
        if (file.write(bytes) && file.commit(name.file())) {
            layer.files().fsync(shard.get());  // best effort: the name, not the bytes, is at stake
            return {true, {}};
        }
        error = file.error();
        struct stat status {};
        const bool deleted = layer.files().stat(shard.get(), &status) == 0 && status.st_nlink == 0;
        if (!deleted) break;
    }
    return {false, error};
}

}  // namespace jitney::cache
