// File descriptors that close themselves, and reads and writes that finish what they begin.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cache/file_system.hpp"

namespace jitney::cache {

class Handle {
  public:
    Handle() = default;
    Handle(FileSystem& files, int file) : files_(&files), file_(file) {}
    Handle(Handle&& other) noexcept : files_(other.files_), file_(std::exchange(other.file_, -1)) {}
    Handle& operator=(Handle&& other) noexcept;
    ~Handle() { close(); }

    int get() const { return file_; }
    explicit operator bool() const { return file_ >= 0; }
    // Returns 0, or the errno of close: data that the file system could not keep.
    int close();

  private:
    FileSystem* files_ = nullptr;
    int file_ = -1;
};

// Calls again while a signal interrupts; gives up after many, so that nothing can spin for ever.
template <class Call>
auto retry_interrupted(Call call) {
    auto result = call();
    for (int attempt = 0; result < 0 && errno == EINTR && attempt < 1000; ++attempt) {
        result = call();
    }
    return result;
}

Handle open_file(FileSystem& files, int directory, const std::string& name, int flags,
                 mode_t mode = 0);

// Reads up to `limit` bytes from the file's current position; false and errno on an error.
bool read_bytes(FileSystem& files, int file, std::uint64_t limit, std::string* bytes);

// Writes all of `bytes`; false and errno on an error.
bool write_bytes(FileSystem& files, int file, std::string_view bytes);

std::string error_text(int error);

}  // namespace jitney::cache
