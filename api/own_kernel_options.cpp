#include "api/own_kernel_options.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "operations/refuse.hpp"

namespace jitney {
namespace {

using checks::refuse;

enum class Value { none, boolean, number, numbers };

struct Allowed {
    std::string_view name;
    Value value;
};

// These change the machine code by the option's text alone, or nothing but the log.
constexpr Allowed kAllowed[] = {
    {"--use_fast_math", Value::none},
    {"--extra-device-vectorization", Value::none},
    {"--restrict", Value::none},
    {"--ftz", Value::boolean},
    {"--prec-div", Value::boolean},
    {"--prec-sqrt", Value::boolean},
    {"--fmad", Value::boolean},
    {"--maxrregcount", Value::number},
    {"--builtin-move-forward", Value::boolean},
    {"--builtin-initializer-list", Value::boolean},
    {"--device-int128", Value::none},
    {"--disable-warnings", Value::none},
    {"--diag-suppress", Value::numbers},
    {"--diag-warn", Value::numbers},
    {"--diag-error", Value::numbers},
};

struct Refused {
    std::string_view beginning;
    std::string_view reason;
};

constexpr std::string_view kFiles =
    "it reads a file of this machine, and a key is the same on every machine: give headers by name "
    "and text";
constexpr std::string_view kWrites = "it writes a file: leave it out";
constexpr std::string_view kArch =
    "a kernel is compiled for the GPU that it is launched on, or the arch that is named to "
    "prewarm: leave it out";
constexpr std::string_view kMacro = "give it as a constant";
constexpr std::string_view kPaths =
    "it writes the working directory into the machine code, and equal keys are equal code on every "
    "machine: leave it out";
constexpr std::string_view kLinked =
    "a kernel is one program, which is not linked to others: leave it out";

// The first that an option begins with counts.
constexpr Refused kRefused[] = {
    {"--include-path", kFiles},
    {"-I", kFiles},
    {"--pre-include", kFiles},
    {"-include", kFiles},
    {"--use-pch", kFiles},
    {"--pch", kFiles},
    {"-pch", kFiles},
    {"--create-pch", kWrites},
    {"--time", kWrites},
    {"-time", kWrites},
    {"--fdevice-time-trace", kWrites},
    {"-fdevice-time-trace", kWrites},
    {"--gpu-architecture", kArch},
    {"-arch", kArch},
    {"--define-macro", kMacro},
    {"-D", kMacro},
    {"--undefine-macro", "leave what it takes away out of the constants"},
    {"-U", "leave what it takes away out of the constants"},
    {"--generate-line-info", kPaths},
    {"-lineinfo", kPaths},
    {"--device-debug", kPaths},
    {"-G", kPaths},
    {"--std", "kernels are C++20: leave it out"},
    {"-std", "kernels are C++20: leave it out"},
    {"--relocatable-device-code", kLinked},
    {"-rdc", kLinked},
    {"--device-c", kLinked},
    {"-dc", kLinked},
    {"--device-w", kLinked},
    {"-dw", kLinked},
    {"--dlink-time-opt", kLinked},
    {"-dlto", kLinked},
    {"--frandom-seed", "the seed is the digest of the kernel's key: leave it out"},
    {"-frandom-seed", "the seed is the digest of the kernel's key: leave it out"},
};

bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 6 &&
           std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_numbers(std::string_view text) {
    for (;;) {
        const std::size_t comma = std::min(text.find(','), text.size());
        if (!is_number(text.substr(0, comma))) return false;
        if (comma == text.size()) return true;
        text.remove_prefix(comma + 1);
    }
}

bool takes(Value kind, std::string_view value) {
    switch (kind) {
        case Value::none:
            return false;
        case Value::boolean:
            return value == "true" || value == "false";
        case Value::number:
            return is_number(value);
        case Value::numbers:
            return is_numbers(value);
    }
    return false;
}

std::string_view example(Value kind) {
    switch (kind) {
        case Value::none:
            return "";
        case Value::boolean:
            return "=true or =false";
        case Value::number:
            return "=64";
        case Value::numbers:
            return "=177,550";
    }
    return "";
}

std::string names() {
    std::string all;
    for (const Allowed& each : kAllowed)
        all += fmt::format("{}{}", all.empty() ? "" : ", ", each.name);
    return all;
}

void check_option(std::string_view option, const std::string& file) {
    const std::size_t equals = std::min(option.find('='), option.size());
    const std::string_view name = option.substr(0, equals);
    const auto known = std::ranges::find(kAllowed, name, &Allowed::name);
    if (known != std::end(kAllowed)) {
        const bool has_value = equals < option.size();
        if (has_value ? takes(known->value, option.substr(equals + 1))
                      : known->value == Value::none) {
            return;
        }
        refuse("the option '{}' of the kernel {} is to be {}{}, as one text", option.substr(0, 200),
               file, known->name, example(known->value));
    }
    for (const Refused& each : kRefused) {
        if (!option.starts_with(each.beginning)) continue;
        refuse("a kernel may not have the option '{}' ({}): {}", option.substr(0, 200), file,
               each.reason);
    }
    refuse("a kernel may not have the option '{}' ({}), but these, in full: {}",
           option.substr(0, 200), file, names());
}

}  // namespace

void check_options(const std::vector<std::string>& options, const std::string& file) {
    for (const std::string& option : options)
        check_option(option, file);
}

}  // namespace jitney
