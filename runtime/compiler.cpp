#include "runtime/compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "jitney/error.hpp"
#include "runtime/caller_thread.hpp"
#include "runtime/forks.hpp"
#include "runtime/log.hpp"
#include "runtime/nvrtc.hpp"
#include "runtime/sources.hpp"

namespace jitney::runtime {
namespace {

// Beside the arch; a change of these changes every key. Plain constexpr functions of the headers
// that host and device share are device code here.
constexpr std::array kStandardOptions = {"--std=c++20", "--device-as-default-execution-space"};

std::string arch_option(const KernelSource& source) {
    return "--gpu-architecture=" + source.arch;
}

// 90 of "sm_90a"; nothing where the text is no arch.
std::optional<int> arch_number(std::string_view arch) {
    constexpr std::string_view prefix = "sm_";
    if (arch.substr(0, prefix.size()) != prefix) return std::nullopt;
    int number = 0;
    const char* last = arch.data() + arch.size();
    const auto [end, error] = std::from_chars(arch.data() + prefix.size(), last, number);
    if (error != std::errc() || last - end > 1) return std::nullopt;
    return number;
}

struct Target {
    std::string option;
    cache::PayloadKind kind = cache::PayloadKind::cubin;
};

// Once for an arch: a GPU that is newer than NVRTC, or a name that was mistyped for prewarm.
void warn_of_ptx(const Nvrtc& compiler, const std::string& arch, int known) {
    static std::mutex mutex;
    static std::set<std::string> said;
    const std::lock_guard lock(mutex);
    if (!said.insert(arch).second) return;
    log::warn(
        fmt::format("NVRTC {}.{} does not know {}: kernels for it are PTX of compute_{}, which "
                    "the driver compiles when it loads them; a newer NVRTC makes machine code",
                    compiler.version.major, compiler.version.minor, arch, known));
}

Target choose_target(const Nvrtc& compiler, const KernelSource& source) {
    const std::optional<int> number = arch_number(source.arch);
    if (!number) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("\"{}\" is no architecture such as sm_90a, in {}", source.arch,
                                source.specialization));
    }
    const std::vector<int>& known = compiler.archs;
    // An NVRTC that names no archs is asked for what is wanted.
    if (known.empty() || std::binary_search(known.begin(), known.end(), *number)) {
        return {arch_option(source)};
    }
    const auto above = std::lower_bound(known.begin(), known.end(), *number);
    if (above == known.begin()) {
        throw Error(
            ErrorCode::unsupported,
            fmt::format("{} can't be compiled: {} is older than sm_{}, the oldest that NVRTC "
                        "{}.{} compiles for; use an NVRTC of an earlier CUDA, by JITNEY_LIBNVRTC",
                        source.specialization, source.arch, known.front(), compiler.version.major,
                        compiler.version.minor));
    }
    warn_of_ptx(compiler, source.arch, *(above - 1));
    return {fmt::format("--gpu-architecture=compute_{}", *(above - 1)), cache::PayloadKind::ptx};
}

// NVRTC puts a number of the process into the names of what has internal linkage, unless it is
// given a seed for it. The digest of the kernel's key is one, so that equal keys give equal bytes
// in every process. It is no part of the key, which it is made of. NVRTC 12 knows no such option.
constexpr std::string_view kSeedOption = "--frandom-seed=";

std::string seed_option(const KernelSource& source) {
    return fmt::format("{}{}", kSeedOption, key_of(source).digest.hex());
}

// Whether an NVRTC of this process has refused a seed.
std::atomic<bool> knows_no_seed{false};

// The headers that the unit can include: the embedded sources that it does, or a caller's own.
std::vector<Header> headers_of(const KernelSource& source) {
    if (source.headers) return *source.headers;
    std::vector<Header> headers;
    for (const EmbeddedSource& each :
         included_sources(source.translation_unit, kernel_sources::embedded_sources())) {
        headers.push_back({std::string(each.name), std::string(each.text)});
    }
    return headers;
}

class Program {
  public:
    Program(const Nvrtc& compiler, const KernelSource& source) : compiler_(compiler) {
        std::vector<std::string> texts;
        std::vector<std::string> names;
        for (Header& each : headers_of(source)) {
            names.push_back(std::move(each.name));
            texts.push_back(std::move(each.text));
        }
        const std::vector<const char*> name_pointers = pointers_to(names);
        const std::vector<const char*> text_pointers = pointers_to(texts);
        expect(compiler_.nvrtcCreateProgram(&program_, source.translation_unit.c_str(),
                                            source.file.c_str(), static_cast<int>(names.size()),
                                            text_pointers.data(), name_pointers.data()),
               "nvrtcCreateProgram");
        expect(compiler_.nvrtcAddNameExpression(program_, source.function.c_str()),
               "nvrtcAddNameExpression");
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { compiler_.nvrtcDestroyProgram(&program_); }

    static std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
        std::vector<const char*> pointers;
        pointers.reserve(texts.size());
        for (const std::string& text : texts)
            pointers.push_back(text.c_str());
        return pointers;
    }

    void expect(nvrtcResult result, const char* what) const {
        if (result == NVRTC_SUCCESS) return;
        throw Error(ErrorCode::internal,
                    fmt::format("{} returned {}", what, compiler_.nvrtcGetErrorString(result)));
    }

    nvrtcResult compile(const std::vector<std::string>& options) {
        const std::vector<const char*> pointers = pointers_to(options);
        return compiler_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()),
                                             pointers.data());
    }

    std::string log() const {
        return bytes(compiler_.nvrtcGetProgramLogSize, compiler_.nvrtcGetProgramLog, true);
    }

    std::string payload(cache::PayloadKind kind) const {
        return kind == cache::PayloadKind::ptx
                   ? bytes(compiler_.nvrtcGetPTXSize, compiler_.nvrtcGetPTX, true)
                   : bytes(compiler_.nvrtcGetCUBINSize, compiler_.nvrtcGetCUBIN, false);
    }

    std::string lowered_name(const std::string& function) const {
        const char* lowered = nullptr;
        expect(compiler_.nvrtcGetLoweredName(program_, function.c_str(), &lowered),
               "nvrtcGetLoweredName");
        return lowered;
    }

  private:
    // Texts are counted with their NUL.
    template <class Size, class Get>
    std::string bytes(Size size_of_result, Get get, bool is_text) const {
        std::size_t size = 0;
        expect(size_of_result(program_, &size), "asking NVRTC for the size of a result");
        std::string result(size, '\0');
        if (size != 0) expect(get(program_, result.data()), "asking NVRTC for a result");
        if (is_text) result.resize(std::min(result.find('\0'), result.size()));
        return result;
    }

    const Nvrtc& compiler_;
    nvrtcProgram program_ = nullptr;
};

bool lacks_builtins(nvrtcResult result, const std::string& log) {
    return result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE ||
           log.find("nvrtc-builtins") != std::string::npos;
}

// The line that tells most in one sentence; a warning may name what is called an error.
std::string_view first_error(std::string_view log) {
    std::size_t at = std::min(log.find(": error"), log.find(": catastrophic error"));
    if (at == std::string_view::npos) at = log.find("error");
    if (at == std::string_view::npos) return "it gives no reason";
    const std::size_t first = log.rfind('\n', at) + 1;  // npos + 1 is 0
    return log.substr(first, log.find('\n', at) - first);
}

// The reason for a sentence. What is wrong with the function's name NVRTC tells of a file of its
// own.
std::string reason_in(std::string_view log, const KernelSource& source) {
    const std::string_view line = first_error(log);
    const std::size_t told = line.find(": error: ");
    if (!line.starts_with("__nv_name_map(") || told == std::string_view::npos) {
        return std::string(line);
    }
    return fmt::format("there is no __global__ function '{}' in it: {}", source.function,
                       line.substr(told + 9));
}

[[noreturn]] void throw_compile_error(const Nvrtc& compiler, const KernelSource& source,
                                      nvrtcResult result, const std::string& log) {
    if (lacks_builtins(result, log)) {
        throw Error(ErrorCode::no_compiler,
                    fmt::format("{} has to be compiled, and NVRTC {} can't open "
                                "libnvrtc-builtins.so.{}.{}, which belongs beside it: install "
                                "both from the same CUDA, or set JITNEY_LIBNVRTC to a complete one",
                                source.specialization, compiler.path, compiler.version.major,
                                compiler.version.minor));
    }
    throw CompileError(fmt::format("NVRTC {}.{} can't compile {} ({}): {}", compiler.version.major,
                                   compiler.version.minor, source.specialization,
                                   compiler.nvrtcGetErrorString(result), reason_in(log, source)),
                       source.specialization, log);
}

const Nvrtc& compiler_for(const KernelSource& source) {
    try {
        return nvrtc();
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{} has to be compiled, and {}",
                                              source.specialization, error.what()));
    }
}

// The source, compiled with these options and a seed; without one where the compiler knows none,
// which it tells before it compiles. A failure is thrown.
std::unique_ptr<const Program> compiled_program(const Nvrtc& compiler, const KernelSource& source,
                                                const std::vector<std::string>& options) {
    std::vector<std::string> seeded = options;
    if (!knows_no_seed.load(std::memory_order_relaxed)) seeded.push_back(seed_option(source));
    for (;;) {
        auto program = std::make_unique<Program>(compiler, source);
        const nvrtcResult result = program->compile(seeded);
        if (result == NVRTC_SUCCESS) return program;
        const std::string log = program->log();
        const bool refused = result == NVRTC_ERROR_INVALID_OPTION &&
                             seeded.size() > options.size() &&
                             log.find(kSeedOption) != std::string::npos;
        if (!refused) throw_compile_error(compiler, source, result, log);
        knows_no_seed.store(true, std::memory_order_relaxed);
        seeded = options;
    }
}

// "ptxas info    : Used 32 registers", or a line that goes on with one.
bool is_remark(std::string_view line) {
    if (line.substr(0, 6) != "ptxas ") return false;
    const std::size_t at = line.find_first_not_of(' ', 5);
    return at != std::string_view::npos && (line[at] == '.' || line.substr(at, 4) == "info");
}

// The log without what ptxas says only because a report was asked for.
std::string without_remarks(std::string_view log) {
    std::string rest;
    while (!log.empty()) {
        const std::size_t end = std::min(log.find('\n'), log.size() - 1) + 1;
        const std::string_view line = log.substr(0, end);
        log.remove_prefix(end);
        const bool has_number = line.find("(C") != std::string_view::npos;  // (C7510): advice
        if (!is_remark(line) || has_number) rest += line;
    }
    return rest;
}

}  // namespace

CompiledKernel compile(const KernelSource& source, CompileReport* report) {
    const KeptThread kept;
    kept.make_plain();
    const auto start = std::chrono::steady_clock::now();
    const Compiling at_work(source.specialization);
    const Nvrtc& compiler = compiler_for(source);
    const Target target = choose_target(compiler, source);
    std::vector<std::string> options = {target.option};
    options.insert(options.end(), kStandardOptions.begin(), kStandardOptions.end());
    options.insert(options.end(), source.options.begin(), source.options.end());
    if (report != nullptr) options.emplace_back("--ptxas-options=-v");

    const std::unique_ptr<const Program> program = compiled_program(compiler, source, options);
    const std::string log = program->log();
    CompiledKernel compiled;
    compiled.entry.compiler = compiler.version.text();
    compiled.entry.lowered_name = program->lowered_name(source.function);
    compiled.entry.kind = target.kind;
    compiled.entry.payload = program->payload(target.kind);
    compiled.log = log;
    if (report != nullptr) {
        *report = parse_report(log, compiled.entry.lowered_name);
        compiled.log = without_remarks(log);
    }
    compiled.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return compiled;
}

cache::Key key_of(const KernelSource& source) {
    cache::KeyBuilder builder(source.specialization);
    builder.source("(translation unit)",
                   source.key_unit.empty() ? source.translation_unit : source.key_unit);
    builder.source("(function)", source.function);
    for (const Header& each : headers_of(source)) {
        // No name that a caller gives to a header is that of anything else in the key.
        builder.source(source.headers ? "header " + each.name : each.name, each.text);
    }
    builder.option(arch_option(source));
    for (const char* option : kStandardOptions)
        builder.option(option);
    for (const std::string& option : source.options)
        builder.option(option);
    return builder.finish();
}

}  // namespace jitney::runtime
