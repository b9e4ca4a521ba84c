#include "cli/own_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/file.hpp"

namespace jitney::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostBytes = 64 << 20;

constexpr std::string_view kFields[] = {"arch",    "file",    "function", "constants",
                                        "headers", "options", "source"};

std::string text_in(const Json& value, std::string_view name) {
    if (!value.is_string()) {
        refuse(fmt::format("'{}' is {}, and is to be a text", name, value.dump().substr(0, 80)));
    }
    return value.get<std::string>();
}

// A text, or a list of them; none where the field is not there.
std::vector<std::string> texts_in(const Json& object, const char* name) {
    std::vector<std::string> texts;
    const auto at = object.find(name);
    if (at == object.end()) return texts;
    if (!at->is_array()) return {text_in(*at, name)};
    for (const Json& each : *at)
        texts.push_back(text_in(each, name));
    return texts;
}

std::string read(const std::string& directory, const std::string& name, std::string_view what) {
    return read_text(name.starts_with('/') ? name : directory + name, kMostBytes, what);
}

std::vector<KernelConstant> constants_in(const Json& object) {
    std::vector<KernelConstant> constants;
    const auto at = object.find("constants");
    if (at == object.end()) return constants;
    if (!at->is_object()) refuse("'constants' is to be an object of names and values");
    for (const auto& [name, value] : at->items()) {
        if (value.is_boolean()) {
            constants.emplace_back(name, value.get<bool>());
        } else if (value.is_number_unsigned()) {
            constants.emplace_back(name, value.get<std::uint64_t>());
        } else if (value.is_number_integer()) {
            constants.emplace_back(name, value.get<std::int64_t>());
        } else if (value.is_number()) {
            constants.emplace_back(name, value.get<double>());
        } else {
            constants.emplace_back(name, text_in(value, name));
        }
    }
    return constants;
}

std::vector<KernelHeader> headers_in(const Json& object, const std::string& directory) {
    std::vector<KernelHeader> headers;
    const auto at = object.find("headers");
    if (at == object.end()) return headers;
    if (!at->is_object()) {
        for (const std::string& name : texts_in(object, "headers"))
            headers.push_back({name, read(directory, name, "a header")});
        return headers;
    }
    for (const auto& [name, text] : at->items())
        headers.push_back({name, text_in(text, name)});
    return headers;
}

KernelCode code_in(const Json& object, const std::string& directory) {
    KernelCode code;
    if (const auto at = object.find("file"); at != object.end()) code.file = text_in(*at, "file");
    if (const auto at = object.find("function"); at != object.end())
        code.function = text_in(*at, "function");
    code.constants = constants_in(object);
    code.headers = headers_in(object, directory);
    code.options = texts_in(object, "options");
    const auto source = object.find("source");
    code.source = source != object.end() ? text_in(*source, "source")
                                         : read(directory, code.file, "the text of a kernel");
    return code;
}

}  // namespace

std::optional<std::string_view> own_kernel_in(std::string_view line) {
    constexpr std::string_view keyword = "own";
    constexpr std::string_view blanks = " \t";
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    if (!line.starts_with(keyword)) return std::nullopt;
    line.remove_prefix(keyword.size());
    const std::size_t at = std::min(line.find_first_not_of(blanks), line.size());
    if (at == 0 && !line.empty() && line.front() != '{') return std::nullopt;
    return line.substr(at);
}

std::vector<KernelTarget> read_own_kernel(std::string_view json, const std::string& directory) {
    const Json object = Json::parse(json, nullptr, false);
    if (!object.is_object()) {
        refuse(
            "behind 'own' stands no JSON object, on one line, such as own {\"arch\": \"sm_90a\", "
            "\"file\": \"saxpy.cu\", \"function\": \"saxpy\"}");
    }
    for (const auto& [name, value] : object.items()) {
        if (std::ranges::find(kFields, name) != std::end(kFields)) continue;
        refuse(fmt::format("a kernel has no '{}', but {}", name, fmt::join(kFields, ", ")));
    }
    const std::vector<std::string> archs = texts_in(object, "arch");
    if (archs.empty()) refuse("a kernel has no 'arch': give one, such as \"sm_90a\", or several");
    KernelCode code = code_in(object, directory);
    std::vector<KernelTarget> targets;
    for (const std::string& arch : archs) {
        // All of sm_90 is compiled so; of the others, those that need it.
        code.arch_specific = arch.ends_with('a') && arch != "sm_90a";
        const Kernel kernel(code);
        kernel.spec(arch);  // is one of a GPU's, or an error
        targets.push_back({kernel, arch});
    }
    return targets;
}

}  // namespace jitney::cli
