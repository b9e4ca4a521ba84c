// Kernels of a caller's own under the real NVRTC: what the compiler says is told in the caller's
// lines, no file of the machine is read, and equal code is equal bytes wherever it is compiled.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/own_kernel.hpp"
#include "jitney/error.hpp"
#include "jitney/kernel.hpp"
#include "runtime/compiler.hpp"
#include "runtime/parameter_bytes.hpp"
#include "tests/kernels/nvrtc_here.hpp"

namespace jitney::tests {
namespace {

namespace fs = std::filesystem;

// A directory of this process, the current one for as long as it lives.
class CurrentDirectory {
  public:
    CurrentDirectory() : before_(fs::current_path()) {
        path_ = (fs::temp_directory_path() / "jitney-own-XXXXXX").string();
        if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        fs::current_path(path_);
    }
    CurrentDirectory(const CurrentDirectory&) = delete;
    CurrentDirectory& operator=(const CurrentDirectory&) = delete;
    ~CurrentDirectory() {
        fs::current_path(before_);
        fs::remove_all(path_);
    }
    const std::string& path() const { return path_; }

  private:
    fs::path before_;
    std::string path_;
};

cache::Entry compiled(const KernelCode& code) {
    return runtime::compile(source_of(*own_kernel_of(code), {80, 0})).entry;
}

CompileError failure(const KernelCode& code) {
    try {
        compiled(code);
    } catch (const CompileError& error) {
        return error;
    }
    FAIL("it compiled");
    throw std::logic_error("not reached");
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

KernelCode scale_code() {
    KernelCode code;
    code.source =
        "#include \"own/scaled.cuh\"\n"
        "#if FACTOR != 3\n"
        "#error the constant is not there\n"
        "#endif\n"
        "namespace {\n"
        "template <class T, int n>\n"
        "__global__ void scale(T* x, const char** where) {\n"
        "    static_assert(LIMIT < 0 && SMALL == 0.5f && FLAG);\n"
        "    assert(x != nullptr);\n"
        "    *where = __FILE__;\n"
        "    x[threadIdx.x] = own::scaled<TYPE>(x[threadIdx.x]) * n;\n"
        "}\n"
        "}\n";
    code.function = "scale<TYPE, FACTOR>";
    code.file = "own/scale.cu";
    code.constants = {
        {"FACTOR", 3}, {"LIMIT", -1}, {"SMALL", 0.5f}, {"FLAG", true}, {"TYPE", "float"}};
    code.headers = {{"own/scaled.cuh",
                     "#pragma once\n#include \"own/types.h\"\nnamespace own {\n"
                     "template <class T> T scaled(T x) { return static_cast<T>(x * kHalf); }\n}\n"},
                    {"own/types.h", "constexpr float kHalf = 0.5f;\n"}};
    return code;
}

}  // namespace

TEST_CASE("own kernels compile with their constants and headers") {
    if (!has_nvrtc()) return;
    const cache::Entry entry = compiled(scale_code());
    CHECK(entry.payload.size() > 500);
    CHECK(contains(entry.lowered_name, "scaleIfLi3EE"));
    KernelCode plain;
    plain.source = "extern \"C\" __global__ void plain() {}";
    plain.function = "plain";
    CHECK(compiled(plain).lowered_name == "plain");
}

TEST_CASE("own kernels take every option that they may have") {
    if (!has_nvrtc()) return;
    for (const char* option :
         {"--use_fast_math", "--extra-device-vectorization", "--restrict", "--ftz=true",
          "--prec-div=false", "--prec-sqrt=false", "--fmad=false", "--maxrregcount=32",
          "--builtin-move-forward=false", "--builtin-initializer-list=false", "--device-int128",
          "--disable-warnings", "--diag-suppress=177,550", "--diag-warn=177", "--diag-error=177"}) {
        CAPTURE(option);
        KernelCode code = scale_code();
        code.options = {option};
        CHECK_NOTHROW(compiled(code));
    }
}

TEST_CASE("own kernels: what the compiler objects to is told in the caller's lines") {
    if (!has_nvrtc()) return;
    KernelCode code = scale_code();
    code.source += "\n__device__ int unknown() { return missing; }\n";
    const CompileError in_text = failure(code);
    CHECK(contains(in_text.what(), "own/scale.cu(15): error: identifier \"missing\""));
    CHECK(contains(in_text.what(), "own:own/scale.cu:scale<TYPE, FACTOR>("));
    CHECK(contains(in_text.log(), "return missing;"));

    code = scale_code();
    code.headers[1].text += "int x = also_missing;\n";
    CHECK(contains(failure(code).what(), "own/types.h(2): error: identifier \"also_missing\""));

    code = scale_code();
    code.constants.emplace_back("Z", "neither_here");
    code.source += "\nconstexpr int z = Z;";
    CHECK(contains(failure(code).what(), "own/scale.cu(15): error: identifier \"neither_here\""));

    for (const auto& [function, words] :
         {std::pair{"scales<float, 3>",
                    "there is no __global__ function 'scales<float, 3>' in it: "
                    "identifier \"scales\" is undefined"},
          std::pair{"own::scaled<float>", "there is no __global__ function 'own::scaled<float>'"},
          std::pair{"scale<3, float>", "there is no __global__ function 'scale<3, float>'"}}) {
        code = scale_code();
        code.function = function;
        const CompileError error = failure(code);
        CHECK_MESSAGE(contains(error.what(), words), error.what());
    }

    code = scale_code();
    code.source = "#include <cstdint>\n" + code.source;
    CHECK(contains(failure(code).what(),
                   "cstdint(1): catastrophic error: #error directive: this "
                   "header was not given to the kernel"));
    code.source = "#if 0\n#include <cstdint>\n#endif\n" + scale_code().source;
    CHECK_NOTHROW(compiled(code));
}

TEST_CASE("own kernels: no file is read, in whatever way it is included") {
    if (!has_nvrtc()) return;
    const CurrentDirectory directory;
    fs::create_directories("own");
    for (const char* name : {"disk.h", "own/disk.h"})
        std::ofstream(name) << "#define DISK 1\n";
    const std::string includes[] = {"\"disk.h\"",
                                    "<disk.h>",
                                    "\"./disk.h\"",
                                    "\"own/disk.h\"",
                                    "\"own/../disk.h\"",
                                    "\"own//disk.h\"",
                                    "\"" + directory.path() + "/disk.h\"",
                                    "<" + directory.path() + "/disk.h>"};
    for (const std::string& include : includes) {
        for (const std::string mark : {"#include ", "# /* x\n */ include/**/", "%:include ",
                                       "#inc\\\nlude\t", "\f#\finclude\v"}) {
            CAPTURE(include);
            CAPTURE(mark);
            KernelCode code;
            code.source = mark + include + "\n__global__ void k(int* x) { *x = DISK; }\n";
            code.function = "k";
            code.file = "own/k.cu";
            try {
                compiled(code);
                FAIL_CHECK("it compiled");
            } catch (const Error& error) {
                const std::string text = error.what();
                // Form feeds are no plain text.
                const bool told = contains(text, "was not given to the kernel") ||
                                  (mark.front() == '\f' && contains(text, "no plain text"));
                CHECK_MESSAGE(told, text);
            }
            // From a header of the caller's, too.
            code.headers = {{"own/given.h", mark + include + "\n"}};
            code.source = "#include \"own/given.h\"\n__global__ void k(int* x) { *x = DISK; }\n";
            CHECK_THROWS_AS(compiled(code), Error);
        }
    }
}

TEST_CASE("own kernels: the machine code tells how many bytes their parameters have") {
    if (!has_nvrtc()) return;
    struct Kernel {
        const char* parameters;
        std::size_t bytes;
    };
    for (const Kernel& kernel :
         {Kernel{"", 0}, Kernel{"int* x", 8}, Kernel{"char x, double y, float z, char w", 21},
          Kernel{"Large x, char y", 2049}, Kernel{"const __grid_constant__ Large x", 2048}}) {
        CAPTURE(kernel.parameters);
        const std::string text = fmt::format(
            "struct alignas(16) Large {{ int values[512]; }};\n"
            "template <int n> __global__ void k({}) {{}}\n",
            kernel.parameters);
        const KernelCode code{.source = text, .function = "k<3>"};
        for (const std::uint16_t arch :
             std::initializer_list<std::uint16_t>{75, 80, 90, 100, 120}) {
            CAPTURE(arch);
            const cache::Entry entry =
                runtime::compile(source_of(*own_kernel_of(code), {arch, 0})).entry;
            CHECK(runtime::parameter_bytes(entry.payload, entry.lowered_name) == kernel.bytes);
        }
    }
}

TEST_CASE("own kernels: equal code is equal bytes in every directory") {
    if (!has_nvrtc()) return;
    const auto compiled_elsewhere = [] {
        const CurrentDirectory directory;
        cache::Entry entry = compiled(scale_code());
        CHECK_FALSE(contains(entry.payload, directory.path()));
        return entry;
    };
    const cache::Entry one = compiled_elsewhere();
    const cache::Entry other = compiled_elsewhere();
    CHECK(contains(one.payload, "own/scale.cu"));
    CHECK(one.payload == other.payload);
    CHECK(one.lowered_name == other.lowered_name);
}

}  // namespace jitney::tests
