#include "cli/manifest.hpp"

#include <fmt/format.h>

#include <string_view>

#include "cli/file.hpp"
#include "jitney/error.hpp"
#include "jitney/prewarm.hpp"

namespace jitney::cli {

namespace {

std::string_view trimmed(std::string_view line) {
    constexpr std::string_view kBlank = " \t\r";
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

std::vector<std::string> read_manifest(const std::string& path) {
    constexpr std::uint64_t kMaxBytes = 64 << 20;
    const std::string text = read_text(path, kMaxBytes, "a list of specializations");
    std::vector<std::string> specs;
    std::size_t number = 0;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        const std::string_view line = trimmed(std::string_view(text).substr(start, end - start));
        start = end + 1;
        ++number;
        if (line.empty()) continue;
        try {
            check_spec(line);
            specs.emplace_back(line);
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("{}:{}: {}", path, number, error.what()));
        }
    }
    return specs;
}

}  // namespace jitney::cli
