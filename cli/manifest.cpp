#include "cli/manifest.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "cli/file.hpp"
#include "cli/own_kernel.hpp"
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

Manifest read_manifest(const std::string& path) {
    constexpr std::uint64_t kMaxBytes = 64 << 20;
    const std::string text = read_text(path, kMaxBytes, "a list of specializations");
    // Texts that a line names lie beside the manifest.
    const std::string directory = path.substr(0, path.rfind('/') + 1);
    Manifest manifest;
    std::size_t number = 0;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        const std::string_view whole = std::string_view(text).substr(start, end - start);
        start = end + 1;
        ++number;
        try {
            if (const std::optional<std::string_view> own = own_kernel_in(whole)) {
                for (KernelTarget& target : read_own_kernel(*own, directory))
                    manifest.kernels.push_back(std::move(target));
            } else if (const std::string_view line = trimmed(whole); !line.empty()) {
                check_spec(line);
                manifest.specs.emplace_back(line);
            }
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("{}:{}: {}", path, number, error.what()));
        }
    }
    return manifest;
}

}  // namespace jitney::cli
