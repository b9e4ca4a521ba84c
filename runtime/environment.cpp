#include "runtime/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/log.hpp"

namespace jitney::runtime {
namespace {

bool read_jit() {
    const std::optional<std::string> value = environment("JITNEY_JIT");
    if (!value || *value == "on" || *value == "1") return true;
    if (*value == "off" || *value == "0") return false;
    log::warn(
        fmt::format("JITNEY_JIT is \"{}\", which is neither on nor off: taken as on", *value));
    return true;
}

}  // namespace

std::optional<std::string> environment(const char* name) {
    const char* value = secure_getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

std::vector<std::string> parts_of_path(std::string_view list) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start <= list.size();) {
        const std::size_t end = std::min(list.find(':', start), list.size());
        parts.emplace_back(list.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

bool jit_enabled() {
    static const bool enabled = read_jit();
    return enabled;
}

}  // namespace jitney::runtime
