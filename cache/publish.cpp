#include "cache/publish.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>

namespace jitney::cache {

namespace {

// Unique without coordination, and never guessable enough to matter: O_EXCL refuses what is there.
std::string temp_name() {
    static std::atomic<unsigned> counter{0};
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    return fmt::format("{}{}-{}-{:x}", kTempPrefix, ::getpid(), counter.fetch_add(1),
                       static_cast<std::uint64_t>(ticks));
}

}  // namespace

AtomicFile::AtomicFile(FileSystem& files, int directory, std::string prefix, mode_t mode)
    : files_(files), directory_(directory) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    for (int attempt = 0; attempt < 8; ++attempt) {
        temp_ = prefix + temp_name();
        file_ = open_file(files_, directory_, temp_, kFlags, mode);
        if (file_ || errno != EEXIST) break;
    }
    named_ = static_cast<bool>(file_);
    if (!file_) fail("create a file", errno);
}

AtomicFile::~AtomicFile() {
    file_.close();
    if (named_) files_.unlink(directory_, temp_.c_str());
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
    if (retry_interrupted([&] { return files_.rename(directory_, temp_.c_str(), name.c_str()); }) !=
        0) {
        return fail("rename a file", errno);
    }
    named_ = false;
    return true;
}

std::string publish(Layer& layer, const EntryName& name, std::string_view bytes) {
    std::string error;
    // A second time for a directory that was deleted between its opening and the file's creation.
    for (int attempt = 0; attempt < 2; ++attempt) {
        const Handle shard = layer.open_shard(name.shard(), true);
        if (!shard) {
            const int open_error = errno;
            const std::string why = layer.refusal();
            return why.empty() ? "can't open a directory: " + error_text(open_error) : why;
        }
        AtomicFile file(layer.files(), shard.get(), {}, 0600);
        if (file.write(bytes) && file.commit(name.file())) {
            layer.files().fsync(shard.get());  // best effort: the name, not the bytes, is at stake
            return {};
        }
        error = file.error();
        struct stat status {};
        const bool deleted = layer.files().stat(shard.get(), &status) == 0 && status.st_nlink == 0;
        if (!deleted) break;
    }
    return error;
}

}  // namespace jitney::cache
