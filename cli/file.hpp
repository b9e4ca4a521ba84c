// Files of the command, read and written with errors that say what failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace jitney::cli {

// A regular file, open for reading. Every failure is an Error(io).
class InputFile {
  public:
    explicit InputFile(const std::string& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    std::uint64_t bytes() const { return bytes_; }
    // All of `target`, from an offset on.
    void read_at(std::uint64_t offset, std::span<std::byte> target) const;

  private:
    std::string path_;
    int descriptor_;
    std::uint64_t bytes_ = 0;
};

// All of a text, of a file or of what else can be read to an end, such as a pipe or /dev/stdin,
// without a byte order mark at its beginning. Throws Error: io where it can't be read,
// invalid_argument where it is larger than `most`; `what` is what it would be: "a list of
// specializations".
std::string read_text(const std::string& path, std::uint64_t most, std::string_view what);

// The name under which a new file may take the place of `path`, its symbolic links followed. Throws
// Error(io) where something stands there that is no regular file, such as a pipe or a device.
std::string replaceable(const std::string& path);

// Whether both are one file, under whatever names and links.
bool is_same_file(const std::string& one, const std::string& other);

// A file that takes the place of `path` when it is complete: until publish() it has another name in
// the same directory, and without publish() it goes away. Every failure is an Error(io).
class OutputFile {
  public:
    explicit OutputFile(const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void publish();

  private:
    [[noreturn]] void fail(const char* what) const;

    std::string path_;
    std::string target_;     // replaceable(path)
    std::string temporary_;  // empty once there is none
    int descriptor_ = -1;
};

}  // namespace jitney::cli
