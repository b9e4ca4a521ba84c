// Kernels of a caller's own, before there is a compiler or a GPU: which code is refused, and in
// which form it is kept.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "api/own_kernel.hpp"
#include "cache/key.hpp"
#include "jitney/kernel.hpp"
#include "runtime/compiler.hpp"
#include "tests/api/bad_call.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kSource = "__global__ void k(int* x) { *x = 1; }\n";

KernelCode small_code() {
    return {.source = kSource, .function = "k", .file = "small.cu"};
}

const detail::OwnKernel& own(const KernelCode& code) {
    return *own_kernel_of(code);
}

const Arch kArch = {90, 'a'};

runtime::KernelSource source_of(const KernelCode& code) {
    return jitney::source_of(own(code), kArch);
}

using Bad = BadCall<KernelCode>;

Bad with_source(const std::string& text, std::vector<std::string> words) {
    return {text, [=](KernelCode& code) { code.source = text; }, std::move(words)};
}

Bad with_option(const std::string& option, std::vector<std::string> words) {
    words.push_back(fmt::format("'{}'", option));
    return {option, [=](KernelCode& code) { code.options = {option}; }, std::move(words)};
}

void check_all_refused(const std::vector<Bad>& all) {
    for (const Bad& bad : all)
        check_refused(bad, small_code(), [](const KernelCode& code) { const Kernel kernel(code); });
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("own kernels: code that can't be meant is refused") {
    check_all_refused({
        with_source("", {"small.cu", "is empty"}),
        with_source(" \r\n\t", {"is empty"}),
        with_source("int a;\nint \x01 b;", {"line 2", "\\x01", "plain text"}),
        with_source(std::string("int a;\0int b;", 13), {"line 1", "\\x00"}),
        with_source("int a;\rint b;", {"\\r"}),
        with_source("// caf\xe9\n", {"\\xe9", "UTF-8"}),
        {"no function",
         [](KernelCode& code) { code.function.assign(2, ' '); },
         {"names no function"}},
        {"lines",
         [](KernelCode& code) { code.function = "k\nint"; },
         {"can't be shown", "k\\nint"}},
        {"long", [](KernelCode& code) { code.function.assign(2000, 'k'); }, {"2000", "1024"}},
        {"no file", [](KernelCode& code) { code.file.clear(); }, {"no name", "saxpy.cu"}},
        {"quotes", [](KernelCode& code) { code.file = "a\".cu"; }, {"no name"}},
        {"a path", [](KernelCode& code) { code.file = "/tmp/a.cu"; }, {"'/tmp/a.cu'", "path"}},
        {"a digit",
         [](KernelCode& code) {
             code.constants = {{"1A", 1}};
         },
         {"'1A'", "small.cu"}},
        {"reserved",
         [](KernelCode& code) {
             code.constants = {{"__A", 1}};
         },
         {"'__A'"}},
        {"defined",
         [](KernelCode& code) {
             code.constants = {{"defined", 1}};
         },
         {"'defined'"}},
        {"a blank",
         [](KernelCode& code) {
             code.constants = {{"A B", 1}};
         },
         {"'A B'"}},
        {"no name",
         [](KernelCode& code) {
             code.constants = {{"", 1}};
         },
         {"''"}},
        {"twice",
         [](KernelCode& code) {
             code.constants = {{"A", 1}, {"B", 2}, {"A", 3}};
         },
         {"two constants 'A'"}},
        {"goes on",
         [](KernelCode& code) {
             code.constants = {{"A", "1\\"}};
         },
         {"one line"}},
        {"a comment",
         [](KernelCode& code) {
             code.constants = {{"A", "1 /* "}};
         },
         {"one line"}},
        {"two lines",
         [](KernelCode& code) {
             code.constants = {{"A", "1\n#include \"a\""}};
         },
         {"can't be shown"}},
        {"no header name",
         [](KernelCode& code) {
             code.headers = {{"", ""}};
         },
         {"no name"}},
        {"an odd header",
         [](KernelCode& code) {
             code.headers = {{"a>b", ""}};
         },
         {"'a>b'"}},
        {"two headers",
         [](KernelCode& code) {
             code.headers = {{"a", "1"}, {"b", ""}, {"a", "1"}};
         },
         {"two headers 'a'"}},
        {"a header",
         [](KernelCode& code) {
             code.headers = {{"a", "\x02"}};
         },
         {"header a"}},
        {"memory", [](KernelCode& code) { code.shared_bytes = 1u << 31; }, {"2147483648"}},
    });
    CHECK_THROWS_AS(KernelConstant("A", std::numeric_limits<double>::infinity()), Error);
    CHECK_THROWS_AS(KernelConstant("A", std::numeric_limits<float>::quiet_NaN()), Error);
    for (const char* arch : {"", "sm_90", "sm_12", "sm_90a ", "compute_90", "sm_77"}) {
        CAPTURE(arch);
        CHECK_THROWS_AS(Kernel(small_code()).spec(arch), Error);
        CHECK_THROWS_AS(Kernel(small_code()).manifest(arch), Error);
        CHECK_THROWS_AS(Kernel(small_code()).prewarm(arch), Error);
    }
}

TEST_CASE(
    "own kernels: options that break what the library promises are refused, with the reason") {
    std::vector<Bad> all;
    for (const char* option : {"-I/usr/include", "--include-path=/usr/include", "-I",
                               "--pre-include=a", "-include=a", "--use-pch=a", "--pch-dir=a"}) {
        all.push_back(with_option(option, {"reads a file"}));
    }
    for (const char* option : {"--gpu-architecture=sm_80", "-arch=sm_80"})
        all.push_back(with_option(option, {"the GPU that it is launched on"}));
    for (const char* option : {"-DA=1", "-D", "--define-macro=A"})
        all.push_back(with_option(option, {"as a constant"}));
    for (const char* option : {"-G", "--device-debug", "-lineinfo", "--generate-line-info"})
        all.push_back(with_option(option, {"working directory"}));
    for (const char* option : {"-rdc=true", "--relocatable-device-code=true", "-dlto", "-dc"})
        all.push_back(with_option(option, {"one program"}));
    all.push_back(with_option("--std=c++17", {"C++20"}));
    all.push_back(with_option("--frandom-seed=1", {"digest"}));
    all.push_back(with_option("--time=x", {"writes a file"}));
    all.push_back(with_option("--fdevice-time-trace=x", {"writes a file"}));
    for (const char* option : {"-use_fast_math", "--ptxas-options=-v", "", " ", "x.cu", "--fast"})
        all.push_back(with_option(option, {"--use_fast_math, "}));
    all.push_back(with_option("--use_fast_math=true", {"--use_fast_math, as one text"}));
    all.push_back(with_option("--maxrregcount", {"--maxrregcount=64"}));
    all.push_back(with_option("--maxrregcount=x", {"--maxrregcount=64"}));
    all.push_back(with_option("--maxrregcount 32", {"--use_fast_math, "}));
    all.push_back(with_option("--fmad=1", {"--fmad=true or =false"}));
    all.push_back(with_option("--diag-suppress=1,,2", {"--diag-suppress="}));
    check_all_refused(all);
    KernelCode code = small_code();
    code.options = {"--use_fast_math", "--maxrregcount=32", "--fmad=false", "--diag-suppress=1,20",
                    "--ftz=true"};
    CHECK(source_of(code).options == code.options);
}

TEST_CASE("own kernels: what hangs on the day or on files is refused, wherever it stands") {
    std::vector<Bad> all;
    for (const std::string name : {"__DATE__", "__TIME__", "__TIMESTAMP__", "__has_include",
                                   "__has_include_next", "__has_embed"}) {
        all.push_back(
            with_source(fmt::format("x {} y", name), {name, "text of the kernel small.cu"}));
        all.push_back(with_source("// " + name, {name}));
        all.push_back(with_source(
            fmt::format("a{0}\\\n{1}\n{0}\\\r\n{1}", name.substr(0, 4), name.substr(4)), {name}));
        all.push_back({"header",
                       [=](KernelCode& code) {
                           code.headers = {{"a.h", name}};
                       },
                       {name, "the header a.h"}});
        all.push_back({"constant",
                       [=](KernelCode& code) {
                           code.constants = {{"A", name}};
                       },
                       {name, "the constant A"}});
        all.push_back({"function",
                       [=](KernelCode& code) { code.function = fmt::format("k<{}>", name); },
                       {name, "function"}});
        // Pasted, of pieces from several texts.
        const std::string first = name.substr(0, 3);
        const std::string rest = name.substr(3);
        all.push_back(with_source(fmt::format("#define CAT(a, b) a##b\nCAT({}, {})", first, rest),
                                  {name, "paste"}));
        all.push_back({"apart",
                       [=](KernelCode& code) {
                           code.source =
                               fmt::format("%:define CAT(a, b) a %:%: b\nCAT(A, {})", rest);
                           code.constants = {{"A", first}};
                       },
                       {name, "paste"}});
    }
    all.push_back(with_source("#define C(a, b) a##b\n C(C(_, _), C(DATE, C(_, _)))", {"__DATE__"}));
    // Words that only seem to stand in quotes, or in a comment.
    for (const char* text : {"u'('; C(__DA, TE__) // '", "1'000; C(__DA, TE__) // '000",
                             "R\"(\")\"; C(__DA, TE__) // \"", "\"/*\"; C(__DA, TE__) // */",
                             "'\\''; C(__DA, TE__) // '", "don't\nC(__DA, TE__) '"}) {
        all.push_back(with_source(fmt::format("#define C(a, b) a##b\n{}", text), {"__DATE__"}));
    }
    check_all_refused(all);
    for (const char* text :
         {"#define CAT(a, b) a##_##b\nint CAT(x, y);",
          "#define CAT(a, b) a##_##b\n// has include, /* DATE\n/* TIME\n * DATE */ \"DATE\" 'DATE'",
          "#define CAT(a, b) a##_##b\nconst char* s = R\"x(\" DATE)\" TIME )x\";",
          "int __DATE__x, x__TIME__;", "int has_include, DATE;", "_DATE_",
          "__LINE__ __FILE__ __COUNTER__"}) {
        KernelCode code = small_code();
        code.source += text;
        CHECK_NOTHROW(Kernel{code});
    }
}

TEST_CASE("own kernels: no file is looked for") {
    check_all_refused({
        with_source("#define H \"a\"\n#include H", {"#include H", "write the name"}),
        with_source("  # /* x\n */ include /**/ H(1)", {"#include H(1)"}),
        with_source("%:include H", {"#include H"}),
        with_source("?\?=include H", {"#include H"}),
        with_source("#inc\\\nlude H", {"#include H"}),
        with_source("#include", {"#include"}),
        with_source("#include \"a", {"#include"}),
        with_source("#include <>", {"#include"}),
        with_source("// #include it", {"in comments too"}),
        with_source("#include_next <a>", {"#include_next"}),
        with_source("#embed \"a\"", {"#embed"}),
        with_source("#import \"a\"", {"#import"}),
        {"a header",
         [](KernelCode& code) {
             code.headers = {{"a.h", "#include H"}};
         },
         {"a.h"}},
    });
    KernelCode code = small_code();
    code.source =
        "#include \"given.h\"\n#/**/include<cstdint>\n#if 0\n%: include \"../x\" y\n#endif\n"
        "#inc\\\r\nlude \"/etc/pass\\\nwd\"\n#include < b >\n";
    code.headers = {{"given.h", "#include \"nested.h\"\n"}, {"unused.h", "x"}};
    std::map<std::string, std::string> headers;
    const runtime::KernelSource source = source_of(code);
    for (const runtime::Header& header : source.headers.value())
        headers[header.name] = header.text;
    CHECK(headers.size() == 7);
    CHECK(headers["given.h"] == "#include \"nested.h\"\n");
    CHECK(headers["unused.h"] == "x");
    for (const char* missing : {"nested.h", "cstdint", "../x", "/etc/passwd", " b "}) {
        CAPTURE(missing);
        CHECK(contains(headers[missing], "#error this header was not given"));
    }
}

TEST_CASE("own kernels: constants are macros, and the text keeps its lines") {
    KernelCode code = small_code();
    code.constants = {{"B", true},
                      {"N", -3},
                      {"T", "unsigned short"},
                      {"E", ""},
                      {"F", 0.1f},
                      {"D", 2.0},
                      {"G", -1e30},
                      {"L", std::numeric_limits<std::int64_t>::min()},
                      {"U", std::numeric_limits<std::uint64_t>::max()},
                      {"C", static_cast<unsigned char>(200)}};
    CHECK(source_of(code).translation_unit == std::string("#line 1 \"constants of small.cu\"\n"
                                                          "#define B true\n"
                                                          "#define C 200\n"
                                                          "#define D 2.0\n"
                                                          "#define E \n"
                                                          "#define F 0.1f\n"
                                                          "#define G (-1e+30)\n"
                                                          "#define L (-9223372036854775807 - 1)\n"
                                                          "#define N (-3)\n"
                                                          "#define T unsigned short\n"
                                                          "#define U 18446744073709551615ULL\n"
                                                          "#line 1 \"small.cu\"\n") +
                                                  kSource + "\n");
}

TEST_CASE("own kernels: equal code is one kernel, in whatever order and with whatever line ends") {
    KernelCode code = small_code();
    code.constants = {{"A", 1}, {"B", 2}};
    code.headers = {{"a", "x\ny\n"}, {"b", ""}};
    const Kernel kernel(code);
    KernelCode other = code;
    std::swap(other.constants[0], other.constants[1]);
    std::swap(other.headers[0], other.headers[1]);
    other.headers[1].text = "x\r\ny\r\n";
    CHECK(Kernel(other) == kernel);
    // The name is part of cache entries: it may not change.
    CHECK(kernel.spec("sm_90a") ==
          "own:small.cu:k(A=1,B=2):8ffffd568a67815f99c03dd783a8d16a@sm_90a");
    CHECK(Kernel(small_code()) != kernel);
    // Memory that is granted is no part of the machine code.
    other.shared_bytes = 1024;
    CHECK(Kernel(other) != kernel);
    CHECK(Kernel(other).spec("sm_80") == kernel.spec("sm_80"));
    other = code;
    other.large_clusters = true;
    CHECK(Kernel(other) != kernel);
    CHECK(Kernel(other).spec("sm_80") == kernel.spec("sm_80"));
}

TEST_CASE("own kernels: a long name is shortened, and its digest is whole") {
    KernelCode code = small_code();
    code.function = fmt::format("k<{}>", std::string(900, '1'));
    for (int i = 0; i < 500; ++i)
        code.constants.emplace_back(fmt::format("A{}", i), i);
    const std::string spec = Kernel(code).spec("sm_80");
    CHECK(spec.size() < cache::kMaxSpecializationBytes);
    CHECK(contains(spec, "...("));
    const cache::Key key = runtime::key_of(source_of(code));
    CHECK(cache::material_flaw(key.material) == "");
    code.constants.back().value += '0';
    CHECK(Kernel(code).spec("sm_80") != spec);
    code.function = fmt::format("k<\xc3\xa9{}\xc3\xa9>", std::string(396, '1'));
    CHECK(cache::material_flaw(runtime::key_of(source_of(code)).material) == "");
}

}  // namespace jitney::tests
