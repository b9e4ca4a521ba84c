#include "runtime/compiler.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cache/digest.hpp"
#include "jitney/error.hpp"
#include "runtime/nvrtc.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using runtime::CompileReport;
using tests::tiny_source;

namespace {

// Whether there is a compiler to test with; says so where there is none.
bool have_nvrtc() {
    if (runtime::nvrtc_location()) return true;
    MESSAGE("skipped: no NVRTC here");
    return false;
}

bool is_cubin(const std::string& payload) {
    return payload.substr(0, 4) ==
           "\x7f"
           "ELF";
}

// The bytes of a section of an ELF file; empty where it has none of that name.
std::string section_of(const std::string& file, const std::string& name) {
    Elf64_Ehdr header;
    REQUIRE(file.size() >= sizeof header);
    std::memcpy(&header, file.data(), sizeof header);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    REQUIRE(file.size() >= header.e_shoff + sections.size() * sizeof(Elf64_Shdr));
    std::memcpy(sections.data(), file.data() + header.e_shoff,
                sections.size() * sizeof(Elf64_Shdr));
    const std::size_t names = sections.at(header.e_shstrndx).sh_offset;
    for (const Elf64_Shdr& section : sections) {
        if (file.c_str() + names + section.sh_name != name) continue;
        return file.substr(section.sh_offset, section.sh_size);
    }
    return {};
}

}  // namespace

TEST_CASE("a kernel compiles for every arch, and the bytes depend on nothing else") {
    if (!have_nvrtc()) return;
    std::vector<std::string> payloads;
    for (const char* arch : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
        INFO(arch);
        const runtime::CompiledKernel compiled = runtime::compile(tiny_source(arch));
        CHECK(compiled.entry.kind == cache::PayloadKind::cubin);
        CHECK(is_cubin(compiled.entry.payload));
        CHECK(compiled.entry.lowered_name == "_Z5scaleILi3EEvPf");
        CHECK(compiled.entry.compiler == runtime::nvrtc().version.text());
        CHECK(compiled.log.empty());
        CHECK(runtime::compile(tiny_source(arch)).entry.payload == compiled.entry.payload);
        for (const std::string& other : payloads)
            CHECK(other != compiled.entry.payload);
        payloads.push_back(compiled.entry.payload);
    }
}

TEST_CASE("scenario: print a cubin's digest" * doctest::skip()) {
    runtime::KernelSource source = tiny_source();
    // In a kernel that is named by its template's arguments, NVRTC gives what is local to the
    // source a name of its own making, with a number of the process in it unless there is a seed.
    source.translation_unit +=
        "namespace own { static __device__ int counter; }\n"
        "template <int n> __global__ void count(float* x) { *x += own::counter++ * n; }\n";
    source.function = "count<3>";
    const cache::Entry entry = runtime::compile(source).entry;
    std::printf("digest: %s\n", cache::digest_of(entry.payload).hex().c_str());
    std::printf("entry: %s\n", entry.lowered_name.c_str());
    source.specialization += "x";  // another key, another seed
    std::printf("other: %s\n",
                cache::digest_of(runtime::compile(source).entry.payload).hex().c_str());
}

TEST_CASE("two processes compile the same bytes of one key") {
    if (!have_nvrtc()) return;
    if (runtime::nvrtc().version.major < 13) {
        MESSAGE("skipped: NVRTC before 13.0 takes no seed");
        return;
    }
    const tests::Variables same = {{"JITNEY_LIBNVRTC", runtime::nvrtc_location()->path}};
    const tests::Ended first = tests::run("scenario: print a cubin's digest", same);
    const tests::Ended second = tests::run("scenario: print a cubin's digest", same);
    REQUIRE_PASSED(first);
    REQUIRE_PASSED(second);
    CHECK(first.value("digest").size() == 32);
    CHECK(first.value("digest") == second.value("digest"));
    CHECK(first.value("other") == second.value("other"));
    CHECK(first.value("digest") != first.value("other"));
}

TEST_CASE("scenario: seeds" * doctest::skip()) {
    for (const int factor : {3, 4}) {
        const runtime::KernelSource source = tiny_source("sm_80", factor);
        const cache::Key key = runtime::key_of(source);
        CHECK(key.material.find("seed") == std::string::npos);
        const std::string payload = runtime::compile(source).entry.payload;
        const bool seeded = payload.find("--frandom-seed=" + key.digest.hex()) != std::string::npos;
        std::printf("seeded: %d\n", static_cast<int>(seeded));
    }
}

TEST_CASE("the seed is the key's digest; an NVRTC that knows none is asked once") {
    const tests::TemporaryDirectory root;
    const auto compiles = [&root](const char* seed) {
        const std::string path = root / seed;
        const tests::Ended ended = tests::run(
            "scenario: seeds", tests::fakes(root / "cache", {{"FAKE_NVRTC_SEED", seed},
                                                             {"FAKE_NVRTC_COMPILES", path}}));
        REQUIRE_PASSED(ended);
        CHECK(ended.count("seeded: 1") == (std::string(seed) == "known" ? 2 : 0));
        const std::string lines = tests::read_file(path);
        return std::count(lines.begin(), lines.end(), '\n');
    };
    CHECK(compiles("known") == 2);
    CHECK(compiles("unknown") == 3);
}

TEST_CASE("a report tells registers, and keeps its remarks out of the log") {
    if (!have_nvrtc()) return;
    CompileReport report;
    const runtime::CompiledKernel with = runtime::compile(tiny_source(), &report);
    const std::string name = ".text." + with.entry.lowered_name;
    const std::string instructions = section_of(with.entry.payload, name);
    CHECK_FALSE(instructions.empty());
    CHECK(instructions == section_of(runtime::compile(tiny_source()).entry.payload, name));
    CHECK(with.log.empty());
    CHECK(report.registers > 0);
    CHECK(report.spill_store_bytes == 0);
    CHECK(report.spill_load_bytes == 0);
}

TEST_CASE("a report shows spills and static shared memory") {
    if (!have_nvrtc()) return;
    runtime::KernelSource source = tiny_source();
    source.translation_unit =
        "__global__ void heavy(float* x) {\n"
        "    __shared__ float s[64];\n"
        "    float v[64];\n"
        "#pragma unroll\n"
        "    for (int i = 0; i < 64; ++i) v[i] = x[i * 32 + threadIdx.x];\n"
        "    s[threadIdx.x] = v[3];\n"
        "    __syncthreads();\n"
        "#pragma unroll\n"
        "    for (int i = 0; i < 64; ++i) x[i * 32 + s[(int)v[0]] > 0 ? i : 63 - i] = v[63 - i] * "
        "v[i];\n"
        "}\n";
    source.function = "heavy";
    source.options = {"--maxrregcount=24"};
    CompileReport report;
    runtime::compile(source, &report);
    CHECK(report.registers == 24);
    CHECK(report.spill_store_bytes > 0);
    CHECK(report.spill_load_bytes > 0);
    CHECK(report.stack_bytes > 0);
    CHECK(report.static_shared_bytes == 256);
    CHECK(report.barriers == 1);
}

TEST_CASE("remarks of another kernel are not taken for one's own") {
    const std::string log =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function '_Zother' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Zother\n"
        "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 64 bytes smem\n"
        "ptxas info    : Compiling entry function '_Zmine' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Zmine\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 32 registers\n";
    const CompileReport mine = runtime::parse_report(log, "_Zmine");
    CHECK(mine.registers == 32);
    CHECK(mine.spill_store_bytes == 0);
    CHECK(mine.static_shared_bytes == 0);
    const CompileReport other = runtime::parse_report(log, "_Zother");
    CHECK(other.registers == 255);
    CHECK(other.spill_store_bytes == 4);
    CHECK(other.stack_bytes == 8);
    CHECK(other.static_shared_bytes == 64);
    CHECK(runtime::parse_report(log, "_Zoth").registers == 0);
}

TEST_CASE("a source that does not compile gives NVRTC's log and the specialization") {
    if (!have_nvrtc()) return;
    runtime::KernelSource source = tiny_source();
    source.translation_unit += "static_assert(1 + 1 == 3, \"arithmetic\");\n";
    try {
        runtime::compile(source);
        FAIL("compiled");
    } catch (const CompileError& error) {
        CHECK(error.code() == ErrorCode::compile_failed);
        CHECK(error.specialization() == source.specialization);
        CHECK(error.log().find("arithmetic") != std::string::npos);
        const std::string what = error.what();
        CHECK(what.find(source.specialization) != std::string::npos);
        CHECK(what.find("jitney.cu(2): error: static assertion failed") != std::string::npos);
        CHECK(what.find('\n') == std::string::npos);
    }
}

TEST_CASE("warnings are kept, and are no failure") {
    if (!have_nvrtc()) return;
    runtime::KernelSource source = tiny_source();
    source.translation_unit += "__device__ inline int odd() { int unused; return 1; return 2; }\n";
    CompileReport report;
    CHECK(runtime::compile(source).log.find("warning") != std::string::npos);
    CHECK(runtime::compile(source, &report).log == runtime::compile(source).log);
}

TEST_CASE("an arch newer than NVRTC gets PTX of the newest one that it knows") {
    if (!have_nvrtc()) return;
    const int newest = runtime::nvrtc().archs.back();
    const runtime::CompiledKernel compiled =
        runtime::compile(tiny_source("sm_" + std::to_string(newest + 1)));
    CHECK(compiled.entry.kind == cache::PayloadKind::ptx);
    CHECK(compiled.entry.payload.find(".target sm_" + std::to_string(newest)) != std::string::npos);
    CHECK(compiled.entry.payload.find('\0') == std::string::npos);
}

TEST_CASE("an arch that NVRTC has dropped, or that is none, is refused") {
    if (!have_nvrtc()) return;
    const auto code = [](const std::string& arch) {
        try {
            runtime::compile(tiny_source(arch));
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode{};
    };
    CHECK(code("sm_30") == ErrorCode::unsupported);
    CHECK(code("gfx942") == ErrorCode::invalid_argument);
    CHECK(code("sm_") == ErrorCode::invalid_argument);
    CHECK(code("sm_90ab") == ErrorCode::invalid_argument);
}

TEST_CASE("many threads compile at once") {
    if (!have_nvrtc()) return;
    std::vector<std::thread> threads;
    std::vector<std::string> payloads(8);
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        threads.emplace_back([&payloads, i] {
            const int factor = static_cast<int>(i / 2) + 1;
            payloads[i] = runtime::compile(tiny_source("sm_80", factor)).entry.payload;
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t i = 0; i < payloads.size(); i += 2) {
        CHECK(is_cubin(payloads[i]));
        CHECK(payloads[i] == payloads[i + 1]);
    }
}
