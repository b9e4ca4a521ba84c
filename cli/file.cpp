#include "cli/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "jitney/error.hpp"

namespace jitney::cli {

namespace {

// A read or a write of more than this is not promised to be done in one call.
constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;

// Some editors begin a text of UTF-8 with it.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Open as long as it lives.
struct Descriptor {
    explicit Descriptor(int opened) : number(opened) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    int number;
};

std::string reason_of(int number) {
    return std::generic_category().message(number);
}

}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) {
        throw Error(ErrorCode::io, "can't open " + path + ": " + reason_of(errno));
    }
    struct stat facts {};
    if (fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(descriptor_);
        throw Error(ErrorCode::io, "can't read " + path + ": it is no regular file");
    }
    bytes_ = static_cast<std::uint64_t>(facts.st_size);
}

InputFile::~InputFile() {
    close(descriptor_);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> target) const {
    while (!target.empty()) {
        const ssize_t got =
            pread(descriptor_, target.data(), std::min(target.size(), kLargestTransfer),
                  static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw Error(ErrorCode::io, "can't read " + path_ + ": " + reason_of(errno));
        if (got == 0) {
            throw Error(ErrorCode::io,
                        "can't read " + path_ + ": it became shorter while it was being read");
        }
        target = target.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

std::string read_text(const std::string& path, std::uint64_t most, std::string_view what) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number < 0) {
        throw Error(ErrorCode::io, "can't open " + path + ": " + reason_of(errno));
    }
    std::string text;
    std::array<char, 1 << 16> piece;
    for (;;) {
        const ssize_t got = read(file.number, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw Error(ErrorCode::io, "can't read " + path + ": " + reason_of(errno));
        if (got == 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.size() > most) {
            throw Error(ErrorCode::invalid_argument,
                        path + " has more than " + std::to_string(most) + " bytes, too many for " +
                            std::string(what));
        }
    }
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    return text;
}

std::string replaceable(const std::string& path) {
    std::error_code code;
    const auto status = std::filesystem::status(path, code);
    if (!std::filesystem::exists(status)) return path;
    if (!std::filesystem::is_regular_file(status)) {
        throw Error(ErrorCode::io, "can't write " + path + ": it exists and is no regular file");
    }
    const std::string target = std::filesystem::canonical(path, code).string();
    if (code) throw Error(ErrorCode::io, "can't write " + path + ": " + code.message());
    return target;
}

bool is_same_file(const std::string& one, const std::string& other) {
    std::error_code code;
    return std::filesystem::equivalent(one, other, code) && !code;
}

OutputFile::OutputFile(const std::string& path) : path_(path), target_(replaceable(path)) {
    // Another process may hold the name of an earlier one of this number.
    for (int attempt = 0; descriptor_ < 0; ++attempt) {
        temporary_ =
            target_ + "." + std::to_string(getpid()) + "." + std::to_string(attempt) + ".tmp";
        descriptor_ =
            open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (descriptor_ < 0 && (errno != EEXIST || attempt == 100)) {
            temporary_.clear();
            fail("create a file beside");
        }
    }
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what) const {
    throw Error(ErrorCode::io,
                std::string("can't ") + what + " " + path_ + ": " + reason_of(errno));
}

void OutputFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t put =
            ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestTransfer));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail("write");
        bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
}

void OutputFile::publish() {
    if (fsync(descriptor_) != 0) fail("write");
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (close(descriptor) != 0) fail("write");
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace");
    temporary_.clear();
}

}  // namespace jitney::cli
