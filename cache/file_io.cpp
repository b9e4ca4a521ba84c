#include "cache/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace jitney::cache {

namespace {

constexpr std::uint64_t kStep = std::uint64_t{1} << 20;

}  // namespace

Handle& Handle::operator=(Handle&& other) noexcept {
    if (this != &other) {
        close();
        files_ = other.files_;
        file_ = std::exchange(other.file_, -1);
    }
    return *this;
}

int Handle::close() {
    if (file_ < 0) return 0;
    const int saved = errno;
    // After EINTR Linux has closed the descriptor all the same: closing again could hit another.
    const int failed = files_->close(std::exchange(file_, -1)) != 0 && errno != EINTR ? errno : 0;
    errno = saved;
    return failed;
}

Handle open_file(FileSystem& files, int directory, const std::string& name, int flags,
                 mode_t mode) {
    return Handle(
        files, retry_interrupted([&] { return files.open(directory, name.c_str(), flags, mode); }));
}

bool read_bytes(FileSystem& files, int file, std::uint64_t limit, std::string* bytes) {
    bytes->clear();
    while (bytes->size() < limit) {
        const std::size_t start = bytes->size();
        const std::size_t step = static_cast<std::size_t>(std::min(limit - start, kStep));
        bytes->resize(start + step);
        const ssize_t count =
            retry_interrupted([&] { return files.read(file, bytes->data() + start, step); });
        bytes->resize(start + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (count < 0) return false;
        if (count == 0) return true;
    }
    return true;
}

bool write_bytes(FileSystem& files, int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count =
            retry_interrupted([&] { return files.write(file, bytes.data(), bytes.size()); });
        if (count < 0) return false;
        if (count == 0) {
            errno = EIO;
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

std::string error_text(int error) {
    return std::generic_category().message(error);
}

}  // namespace jitney::cache
