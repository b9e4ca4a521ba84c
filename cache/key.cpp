#include "cache/key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "core/printable.hpp"

namespace jitney::cache {

namespace {

constexpr std::string_view kTitle = "jitney-key ";

struct Line {
    std::string_view tag;
    std::string_view text;
    std::string_view digest;  // of a source
};

struct Material {
    std::string_view schema;
    std::vector<Line> lines;
};

// Takes `prefix` up to the separator off the front of `rest`.
std::optional<std::string_view> take_until(std::string_view& rest, char separator) {
    const std::size_t end = rest.find(separator);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view taken = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return taken;
}

std::optional<Line> take_line(std::string_view& rest) {
    const auto tag = take_until(rest, ' ');
    const auto length_text = tag ? take_until(rest, ' ') : std::nullopt;
    if (!length_text) return std::nullopt;
    std::size_t length = 0;
    const char* const end = length_text->data() + length_text->size();
    const auto parsed = std::from_chars(length_text->data(), end, length);
    if (parsed.ec != std::errc() || parsed.ptr != end || length >= rest.size()) return std::nullopt;
    Line line{*tag, rest.substr(0, length), {}};
    rest.remove_prefix(length);
    if (line.tag == "source") {
        if (rest.size() < 34 || rest[0] != ' ') return std::nullopt;
        line.digest = rest.substr(1, 32);
        rest.remove_prefix(33);
    }
    if (rest.empty() || rest[0] != '\n') return std::nullopt;
    rest.remove_prefix(1);
    return line;
}

std::optional<Material> parse(std::string_view text) {
    if (!text.starts_with(kTitle)) return std::nullopt;
    text.remove_prefix(kTitle.size());
    const auto schema = take_until(text, '\n');
    if (!schema) return std::nullopt;
    Material material{*schema, {}};
    while (!text.empty()) {
        const auto line = take_line(text);
        if (!line) return std::nullopt;
        material.lines.push_back(*line);
    }
    return material;
}

}  // namespace

Key Key::from_material(std::string material) {
    const Digest digest = digest_of(material);
    return {std::move(material), digest};
}

KeyBuilder::KeyBuilder(std::string_view specialization, std::uint32_t schema)
    : specialization_(specialization), schema_(schema) {}

KeyBuilder& KeyBuilder::source(std::string_view name, std::string_view text) {
    return source(name, digest_of(text));
}

KeyBuilder& KeyBuilder::source(std::string_view name, const Digest& text_digest) {
    sources_.push_back({std::string(name), text_digest});
    return *this;
}

KeyBuilder& KeyBuilder::option(std::string_view text) {
    options_.emplace_back(text);
    return *this;
}

Key KeyBuilder::finish() const {
    std::string material = fmt::format("{}{}\nspecialization {} {}\n", kTitle, schema_,
                                       specialization_.size(), specialization_);
    std::vector<NamedDigest> sources = sources_;
    std::sort(sources.begin(), sources.end(), [](const NamedDigest& a, const NamedDigest& b) {
        return std::tie(a.name, a.digest) < std::tie(b.name, b.digest);
    });
    for (const NamedDigest& source : sources) {
        material +=
            fmt::format("source {} {} {}\n", source.name.size(), source.name, source.digest.hex());
    }
    for (const std::string& option : options_) {
        material += fmt::format("option {} {}\n", option.size(), option);
    }
    return Key::from_material(std::move(material));
}

std::string material_flaw(std::string_view material) {
    const std::string no_key = "the key in it is not the text of a key";
    const auto parsed = parse(material);
    if (!parsed || parsed->lines.empty()) return no_key;
    const std::string_view specialization = parsed->lines[0].text;
    KeyBuilder builder(specialization);
    for (const Line& line : std::span(parsed->lines).subspan(1)) {
        if (line.tag == "source") {
            const auto digest = Digest::from_hex(line.digest);
            if (!digest) return no_key;
            builder.source(line.text, *digest);
        } else {
            builder.option(line.text);
        }
    }
    // Another tag, order, schema or length gives another text.
    if (builder.finish().material != material) return no_key;
    if (specialization.empty()) return "its specialization is empty";
    if (specialization.size() > kMaxSpecializationBytes) {
        return fmt::format("its specialization has {} bytes, more than {}", specialization.size(),
                           kMaxSpecializationBytes);
    }
    if (printable(specialization) != specialization)
        return "its specialization holds characters that can't be shown";
    return {};
}

std::string specialization_of(std::string_view material) {
    const auto parsed = parse(material);
    if (!parsed || parsed->lines.empty() || parsed->lines[0].tag != "specialization") return {};
    return std::string(parsed->lines[0].text);
}

std::vector<std::string> describe_difference(std::string_view first, std::string_view second) {
    if (first == second) return {};
    const auto a = parse(first);
    const auto b = parse(second);
    if (!a || !b) return {"one of the two is not the material of a key"};
    std::vector<std::string> differences;
    if (a->schema != b->schema) {
        differences.push_back(fmt::format("schema {} and {}", a->schema, b->schema));
    }
    using Names = std::map<std::string, std::string_view>;
    const auto index = [](const Material& material) {
        Names names;
        for (const Line& line : material.lines) {
            names.emplace(fmt::format("{} {}", line.tag, line.text), line.digest);
        }
        return names;
    };
    const Names in_first = index(*a);
    const Names in_second = index(*b);
    for (const auto& [name, digest] : in_first) {
        const auto other = in_second.find(name);
        if (other == in_second.end()) {
            differences.push_back(name + " only in the first");
        } else if (other->second != digest) {
            differences.push_back(name + " differs");
        }
    }
    for (const auto& [name, digest] : in_second) {
        if (!in_first.contains(name)) differences.push_back(name + " only in the second");
    }
    if (differences.empty()) differences.emplace_back("the order of the options differs");
    return differences;
}

}  // namespace jitney::cache
