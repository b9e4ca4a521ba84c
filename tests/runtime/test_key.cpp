#include <doctest/doctest.h>

#include <cstdio>

#include "runtime/compiler.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using runtime::Header;
using runtime::key_of;
using tests::tiny_source;

TEST_CASE("the key of a kernel, spelled out") {
    runtime::KernelSource source = tiny_source();
    source.options = {"--maxrregcount=64"};
    const cache::Key key = key_of(source);
    CHECK(key.material ==
          "jitney-key 1\n"
          "specialization 27 tiny_scale<factor=3>@sm_90a\n"
          "source 10 (function) 2f3886e399a03d5fca4a8263d32a9bed\n"
          "source 18 (translation unit) 50b6b620cf00544e45a3f32860e37cb4\n"
          "source 13 tiny/base.cuh ecf3ab20cf7e20418ab38ad75c340d44\n"
          "source 14 tiny/scale.cuh a750fbd5c4ac60c2135b49f01e8dc930\n"
          "option 25 --gpu-architecture=sm_90a\n"
          "option 11 --std=c++20\n"
          "option 35 --device-as-default-execution-space\n"
          "option 17 --maxrregcount=64\n");
    CHECK(key.digest.hex() == "903a4a8bbb5d77126d9d2de0f9470845");
}

TEST_CASE("whatever changes the machine code changes the key") {
    const runtime::KernelSource base = tiny_source();
    const cache::Digest digest = key_of(base).digest;
    runtime::KernelSource other = base;
    SUBCASE("specialization") {
        other.specialization += "x";
    }
    SUBCASE("arch") {
        other.arch = "sm_80";
    }
    SUBCASE("translation unit") {
        other.translation_unit += "\n";
    }
    SUBCASE("function") {
        other.function = "scale<4>";
    }
    SUBCASE("option") {
        other.options.emplace_back("-G");
    }
    SUBCASE("another include") {
        other.translation_unit += "#include \"tiny/unused.cuh\"\n";
    }
    CHECK(key_of(other).digest != digest);
}

TEST_CASE("what is set at load is no part of the key") {
    runtime::KernelSource other = tiny_source();
    other.shared_bytes = 77;
    CHECK(key_of(other).digest == key_of(tiny_source()).digest);
}

TEST_CASE("scenario: print a key" * doctest::skip()) {
    std::printf("key: %s\n", key_of(tiny_source()).digest.hex().c_str());
}

TEST_CASE("keys are equal in every process, directory and environment") {
    const tests::TemporaryDirectory directory;
    const std::string here = key_of(tiny_source()).digest.hex();
    for (const std::string& place : {std::string("/"), directory.path()}) {
        const tests::Ended ended =
            tests::Child("scenario: print a key",
                         {{"HOME", directory.path()}, {"JITNEY_CACHE_DIR", directory / "cache"}},
                         place)
                .wait();
        REQUIRE_PASSED(ended);
        CHECK(ended.value("key") == here);
    }
}

TEST_CASE("headers that a source brings stand in the key under names that nothing else has") {
    runtime::KernelSource source = tiny_source();
    source.headers = {Header{"tiny/scale.cuh", "text"}, Header{"<odd>", ""}};
    const cache::Key key = key_of(source);
    CHECK(key.material.find("source 21 header tiny/scale.cuh ") != std::string::npos);
    CHECK(key.material.find("source 12 header <odd> ") != std::string::npos);
    CHECK(key.material.find(" tiny/base.cuh ") == std::string::npos);
    // A header that is named as what stands beside it, with the texts changed over.
    source.headers = {Header{"(function)", "a"}};
    source.function = "b";
    runtime::KernelSource other = source;
    other.headers = {Header{"(function)", "b"}};
    other.function = "a";
    CHECK(key_of(source).digest != key_of(other).digest);
    // The file's name and what to do about a miss are not compiled.
    other = source;
    other.file = "other.cu";
    other.provided_by = "nobody";
    CHECK(key_of(source).digest == key_of(other).digest);
    other.headers->front().text = "c";
    CHECK(key_of(source).digest != key_of(other).digest);
    other.headers->clear();
    CHECK(key_of(source).digest != key_of(other).digest);
}
