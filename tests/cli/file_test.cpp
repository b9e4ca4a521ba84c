#include "cli/file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <span>
#include <string>

#include "jitney/error.hpp"
#include "tests/cli/raw_file.hpp"
#include "tests/support/temp_dir.hpp"

using namespace jitney;
using namespace jitney::tests;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::ptrdiff_t files_in(const TempDir& directory) {
    const std::filesystem::directory_iterator entries(directory.path());
    return std::distance(begin(entries), end(entries));
}

}  // namespace

TEST_CASE("an output takes its place when it is published, not before") {
    const TempDir directory;
    const std::string path = directory.file("out");
    write_bytes(path, "old");
    cli::OutputFile file(path);
    file.write(bytes_of("new "));
    file.write(bytes_of("content"));
    CHECK(read_bytes(path) == "old");
    file.publish();
    CHECK(read_bytes(path) == "new content");
    CHECK(files_in(directory) == 1);
}

TEST_CASE("an output that is not published leaves nothing") {
    const TempDir directory;
    const std::string path = directory.file("out");
    write_bytes(path, "old");
    {
        cli::OutputFile file(path);
        file.write(bytes_of("new"));
        CHECK(files_in(directory) == 2);
    }
    CHECK(read_bytes(path) == "old");
    CHECK(files_in(directory) == 1);
}

TEST_CASE("two outputs of one name do not meet") {
    const TempDir directory;
    const std::string path = directory.file("out");
    cli::OutputFile first(path);
    cli::OutputFile second(path);
    first.write(bytes_of("first"));
    second.write(bytes_of("second"));
    second.publish();
    CHECK(read_bytes(path) == "second");
    first.publish();
    CHECK(read_bytes(path) == "first");
    CHECK(files_in(directory) == 1);
}

TEST_CASE("only a regular file is replaced") {
    const TempDir directory;
    const std::string pipe = directory.file("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    for (const std::string& path : {pipe, directory.path().string()}) {
        try {
            const cli::OutputFile file(path);
            FAIL_CHECK("accepted: ", path);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::io);
            CHECK(std::string(error.what()).find("no regular file") != std::string::npos);
        }
    }
    CHECK(std::filesystem::is_fifo(pipe));
    CHECK(files_in(directory) == 1);
}

TEST_CASE("a read beyond the end says that the file became shorter") {
    const TempDir directory;
    write_bytes(directory.file("in"), "12345");
    const cli::InputFile file(directory.file("in"));
    CHECK(file.bytes() == 5);
    std::array<std::byte, 3> target;
    file.read_at(2, target);
    CHECK(target[2] == std::byte{'5'});
    CHECK_THROWS_WITH_AS(
        file.read_at(3, target),
        ("can't read " + directory.file("in") + ": it became shorter while it was being read")
            .c_str(),
        Error);
}
