#include "api/own_kernel.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "api/own_kernel_text.hpp"
#include "cache/digest.hpp"
#include "operations/refuse.hpp"
#include "policy/spec.hpp"

namespace jitney {
namespace {

using detail::OwnKernel;

// No specialization of Jitney's begins so: the names in the registry have no colon.
constexpr std::string_view kNamespace = "own:";

// No row of the registry has this number.
constexpr auto kOwnKernel = static_cast<policy::KernelId>(0xFF);

// The first GPU that has instructions of its own, under the suffix a.
constexpr std::uint16_t kFirstSpecific = 90;

// More of them is told by the digest alone.
constexpr std::size_t kShownFunction = 400;
constexpr std::size_t kShownConstants = 1000;

// Every text behind its length, so that none can pass for another.
std::string digest_of(const KernelCode& code) {
    std::string material = "jitney-own 1\n";
    const auto add = [&material](std::string_view tag, std::string_view text) {
        material += fmt::format("{} {} {}\n", tag, text.size(), text);
    };
    add("file", code.file);
    add("function", code.function);
    for (const KernelConstant& constant : code.constants) {
        add("constant", constant.name);
        add("value", constant.value);
    }
    for (const KernelHeader& header : code.headers) {
        add("header", header.name);
        add("text", header.text);
    }
    for (const std::string& option : code.options)
        add("option", option);
    add("source", code.source);
    return cache::digest_of(material).hex();
}

std::string unit_of(const KernelCode& code) {
    std::string unit;
    if (!code.constants.empty()) unit += fmt::format("#line 1 \"constants of {}\"\n", code.file);
    for (const KernelConstant& constant : code.constants)
        unit += fmt::format("#define {} {}\n", constant.name, constant.value);
    return unit + fmt::format("#line 1 \"{}\"\n{}\n", code.file, code.source);
}

// The headers that were given, and for each other name that a text includes one that says so, where
// the compiler gets there: a file of this machine is never looked for.
std::vector<runtime::Header> headers_of(const KernelCode& code) {
    std::vector<runtime::Header> headers;
    std::set<std::string_view> given;
    for (const KernelHeader& header : code.headers) {
        headers.push_back({header.name, header.text});
        given.insert(header.name);
    }
    for (const std::string& name : included_names(code)) {
        if (given.contains(name)) continue;
        headers.push_back({name,
                           "#error this header was not given to the kernel: add it, by its "
                           "name and text, to the headers\n"});
    }
    return headers;
}

// Every kernel that was made, for as long as the process lives.
class OwnKernels {
  public:
    const OwnKernel* intern(KernelCode code) {
        std::string digest = digest_of(code);
        const std::lock_guard lock(mutex_);
        for (auto [at, end] = by_digest_.equal_range(digest); at != end; ++at) {
            if (at->second->code == code) return at->second.get();
        }
        auto made = std::make_unique<OwnKernel>();
        made->unit = unit_of(code);
        made->headers = headers_of(code);
        made->number = by_digest_.size();
        made->code = std::move(code);
        made->digest = digest;
        return by_digest_.emplace(std::move(digest), std::move(made))->second.get();
    }

  private:
    std::mutex mutex_;
    // Kernels that differ in what is granted to them alone share a digest.
    std::multimap<std::string, std::unique_ptr<const OwnKernel>> by_digest_;
};

OwnKernels& own_kernels() {
    static OwnKernels* const all = new OwnKernels;
    return *all;
}

std::string shortened(std::string text, std::size_t most) {
    if (text.size() <= most) return text;
    // Not in the midst of a character of several bytes.
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80)
        --most;
    return text.substr(0, most) + "...";
}

std::string constants_of(const KernelCode& code) {
    std::string list;
    for (const KernelConstant& constant : code.constants)
        list += fmt::format("{}{}={}", list.empty() ? "" : ",", constant.name, constant.value);
    if (list.empty()) return list;
    return fmt::format("({})", shortened(std::move(list), kShownConstants));
}

}  // namespace

const OwnKernel* own_kernel_of(const KernelCode& code) {
    return own_kernels().intern(checked(code));
}

std::string spec_of(const OwnKernel& kernel, const Arch& arch) {
    return fmt::format("{}{}:{}{}:{}@{}", kNamespace, kernel.code.file,
                       shortened(kernel.code.function, kShownFunction), constants_of(kernel.code),
                       kernel.digest, arch.text());
}

runtime::KernelSource source_of(const OwnKernel& kernel, const Arch& arch) {
    runtime::KernelSource source;
    source.specialization = spec_of(kernel, arch);
    source.arch = arch.text();
    source.translation_unit = kernel.unit;
    source.function = kernel.code.function;
    source.options = kernel.code.options;
    source.shared_bytes = static_cast<int>(kernel.code.shared_bytes);
    source.headers = kernel.headers;
    source.file = kernel.code.file;
    source.provided_by = fmt::format(
        "where compiling is allowed, call its prewarm(\"{0}\"), or give the line that its "
        "manifest(\"{0}\") makes to jitney prewarm --manifest",
        source.arch);
    return source;
}

runtime::KernelKey key_of(const OwnKernel& kernel, const Arch& arch) noexcept {
    policy::Spec spec;
    spec.kernel = kOwnKernel;
    spec.arch_number = arch.number;
    spec.arch_suffix = arch.suffix;
    for (std::size_t i = 0; i < 4; ++i) {
        spec.values[i] =
            static_cast<std::int16_t>(static_cast<std::uint16_t>(kernel.number >> 16 * i));
    }
    return std::bit_cast<runtime::KernelKey>(spec);
}

Arch arch_on(const OwnKernel& kernel, int major, int minor) noexcept {
    Arch arch = arch_of_capability(major, minor);
    if (kernel.code.arch_specific && arch.number >= kFirstSpecific) arch.suffix = 'a';
    return arch;
}

Arch arch_named(const OwnKernel& kernel, std::string_view text) {
    const std::optional<Arch> arch = parse_arch(text);
    if (!arch) checks::refuse("'{}' is not an arch such as sm_80 or sm_90a", text.substr(0, 80));
    const Arch asked = arch_on(kernel, arch->number / 10, arch->number % 10);
    if (kernel.code.arch_specific && arch->number >= kFirstSpecific && is_known(*arch)) {
        if (*arch == asked) return *arch;
        checks::refuse("a kernel for '{}' would never be used: its code is arch_specific, give {}",
                       text, asked.text());
    }
    if (const std::string why = why_not_looked_up(*arch); !why.empty()) {
        checks::refuse("a kernel for '{}' would never be used: {}", text, why);
    }
    return *arch;
}

}  // namespace jitney
