#include <doctest/doctest.h>

#include "jitney/error.hpp"
#include "runtime/sources.hpp"

using namespace jitney;
using runtime::included_sources;

namespace {

std::string names(std::string_view unit) {
    std::string joined;
    for (const auto& each : included_sources(unit, kernel_sources::embedded_sources())) {
        joined += std::string(each.name) + ' ';
    }
    return joined;
}

std::string refusal(std::string_view unit) {
    try {
        names(unit);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::internal);
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("includes are followed through other sources, each once, in the order of names") {
    CHECK(names("#include \"tiny/scale.cuh\"\n#include \"tiny/base.cuh\"\n") ==
          "tiny/base.cuh tiny/scale.cuh ");
    CHECK(names("  #  include   \"tiny/unused.cuh\"") == "tiny/unused.cuh ");
    CHECK(names("// #include \"tiny/unused.cuh\"\n#define include\nint x;\n") == "");
    CHECK(names("") == "");
}

TEST_CASE("an include that is no embedded source is named, with its includer") {
    CHECK(refusal("int x;\n#include \"tiny/none.cuh\"\n").find("tiny/none.cuh") !=
          std::string::npos);
    const std::string toolkit = refusal("#include \"tiny/toolkit.cuh\"\n");
    CHECK(toolkit.find("tiny/toolkit.cuh includes <cuda_fp16.h>") != std::string::npos);
}
