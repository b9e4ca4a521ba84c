#include "runtime/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "jitney/error.hpp"

namespace jitney::runtime {
namespace {

void skip_blanks(std::string_view& text) {
    const std::size_t at = text.find_first_not_of(" \t");
    text.remove_prefix(at == std::string_view::npos ? text.size() : at);
}

bool take(std::string_view& text, std::string_view prefix) {
    if (text.substr(0, prefix.size()) != prefix) return false;
    text.remove_prefix(prefix.size());
    return true;
}

// What the include directive of a line names, with its delimiters; empty where it is no directive.
std::string_view include_of(std::string_view line) {
    skip_blanks(line);
    if (!take(line, "#")) return {};
    skip_blanks(line);
    if (!take(line, "include")) return {};
    skip_blanks(line);
    if (line.empty()) return {};
    const char close = line.front() == '"' ? '"' : '>';
    const std::size_t end = line.find(close, 1);
    return end == std::string_view::npos ? line : line.substr(0, end + 1);
}

class Closure {
  public:
    explicit Closure(std::span<const EmbeddedSource> table) : table_(table) {}

    void add_includes_of(std::string_view text, std::string_view name) {
        while (!text.empty()) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            const std::string_view include = include_of(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
            if (!include.empty()) add(include, name);
        }
    }

    std::vector<EmbeddedSource> result() const {
        std::vector<EmbeddedSource> sources;
        sources.reserve(found_.size());
        for (const auto& [name, text] : found_)
            sources.push_back({name, text});
        return sources;
    }

  private:
    void add(std::string_view include, std::string_view includer) {
        if (include.front() != '"' || include.size() < 3) {
            throw Error(ErrorCode::internal,
                        fmt::format("the kernel source {} includes {}, which is no embedded "
                                    "source: please report it",
                                    includer, include));
        }
        const std::string_view name = include.substr(1, include.size() - 2);
        if (found_.count(name) != 0) return;
        const auto at = std::lower_bound(
            table_.begin(), table_.end(), name,
            [](const EmbeddedSource& source, std::string_view key) { return source.name < key; });
        if (at == table_.end() || at->name != name) {
            throw Error(ErrorCode::internal,
                        fmt::format("the kernel source {} includes \"{}\", which is none of the "
                                    "{} embedded sources: please report it",
                                    includer, name, table_.size()));
        }
        found_.emplace(at->name, at->text);
        add_includes_of(at->text, at->name);
    }

    std::span<const EmbeddedSource> table_;
    std::map<std::string_view, std::string_view> found_;
};

}  // namespace

std::vector<EmbeddedSource> included_sources(std::string_view translation_unit,
                                             std::span<const EmbeddedSource> table) {
    Closure closure(table);
    closure.add_includes_of(translation_unit, "(translation unit)");
    return closure.result();
}

}  // namespace jitney::runtime
