#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernel_sources/embedded.hpp"

using jitney::kernel_sources::embedded_sources;
using jitney::kernel_sources::EmbeddedSource;

TEST_CASE("the library carries every device source, byte for byte") {
    namespace fs = std::filesystem;
    const fs::path root = KERNEL_SOURCES_DIRECTORY;
    std::size_t files = 0;
    for (const auto& file : fs::recursive_directory_iterator(root)) {
        const fs::path extension = file.path().extension();
        if (extension != ".cuh" && extension != ".h") continue;
        ++files;
        const std::string name = fs::relative(file.path(), root).generic_string();
        INFO(name);
        const auto at =
            std::find_if(embedded_sources().begin(), embedded_sources().end(),
                         [&name](const EmbeddedSource& each) { return each.name == name; });
        REQUIRE(at != embedded_sources().end());
        std::ifstream stream(file.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        CHECK(at->text == text);
    }
    CHECK(files > 0);
    CHECK(embedded_sources().size() == files);
}

TEST_CASE("the table is sorted by name") {
    CHECK(std::is_sorted(
        embedded_sources().begin(), embedded_sources().end(),
        [](const EmbeddedSource& a, const EmbeddedSource& b) { return a.name < b.name; }));
}
