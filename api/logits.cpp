#include "jitney/logits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "api/logits_access.hpp"
#include "api/refuse.hpp"
#include "cache/digest.hpp"

namespace jitney {
namespace {

using checks::refuse;
using detail::LogitsRecord;
using Parameter = LogitsRecord::Parameter;

constexpr std::size_t kMaxText = 8192;
constexpr std::string_view kBlanks = " \t\r\n";

constexpr std::string_view kNames[] = {"score", "batch", "head",   "query", "key",
                                       "place", "q_len", "kv_len", "at",    "values"};

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Whether a word stands in the text, as a whole.
bool has_word(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
            return true;
        }
    }
    return false;
}

void check_characters(std::string_view text, const char* what) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) >= 0x20 || kBlanks.find(c) != std::string_view::npos) {
            continue;
        }
        refuse("{} of a logits function contains the byte {:#x}; it must be plain text", what,
               static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
}

// A directive that includes: there is nothing to include where kernels are compiled.
bool includes(std::string_view line) {
    line = trimmed(line);
    if (line.empty() || line.front() != '#') return false;
    return trimmed(line.substr(1)).starts_with("include");
}

void check_text(std::string_view text) {
    if (trimmed(text).empty()) {
        refuse("the text of a logits function is empty; give an expression such as 'score'");
    }
    if (text.size() > kMaxText) {
        refuse("the text of a logits function has {} characters, more than {}: shorten it",
               text.size(), kMaxText);
    }
    check_characters(text, "the text");
    int number = 1;
    for (std::string_view rest = text; !rest.empty(); ++number) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        if (includes(rest.substr(0, end))) {
            refuse("line {} of a logits function includes a file; write what it needs in the text",
                   number);
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (text.find(';') != std::string_view::npos && !has_word(text, "return")) {
        refuse(
            "the text of a logits function has statements and returns nothing: let it return the "
            "new score, or make it one expression without ';'");
    }
}

LogitsValue::Kind kind_of(std::string_view type) {
    if (type.ends_with('*')) return LogitsValue::Kind::pointer;
    if (type == "float") return LogitsValue::Kind::fp32;
    if (type == "int") return LogitsValue::Kind::int32;
    if (type == "long long") return LogitsValue::Kind::int64;
    return LogitsValue::Kind::none;
}

Parameter parse_parameter(std::string_view declaration) {
    check_characters(declaration, "a parameter");
    const std::string_view text = trimmed(declaration);
    std::size_t name = text.size();
    while (name > 0 && is_word(text[name - 1]))
        --name;
    Parameter parameter;
    parameter.name = text.substr(name);
    parameter.type = trimmed(text.substr(0, name));
    parameter.kind = kind_of(parameter.type);
    const bool odd = std::ranges::any_of(
        parameter.type, [](char c) { return !is_word(c) && c != ' ' && c != '*'; });
    const bool digit =
        !parameter.name.empty() && parameter.name[0] >= '0' && parameter.name[0] <= '9';
    if (parameter.name.empty() || digit || odd || parameter.kind == LogitsValue::Kind::none) {
        refuse(
            "'{}' is no parameter of a logits function; declare a pointer, float, int or long "
            "long, such as 'const float* slopes'",
            text.substr(0, 80));
    }
    return parameter;
}

std::vector<Parameter> parse_parameters(std::span<const std::string_view> declarations) {
    if (declarations.size() > kLogitsValues) {
        refuse("a logits function has {} parameters; it may have {}: put the rest into memory",
               declarations.size(), kLogitsValues);
    }
    std::vector<Parameter> parameters;
    for (const std::string_view declaration : declarations) {
        Parameter parameter = parse_parameter(declaration);
        const bool taken = std::ranges::find(kNames, parameter.name) != std::end(kNames) ||
                           std::ranges::any_of(parameters, [&parameter](const Parameter& other) {
                               return other.name == parameter.name;
                           });
        if (taken) {
            refuse("a logits function can't have the parameter '{}': the name is taken",
                   parameter.name);
        }
        parameters.push_back(std::move(parameter));
    }
    return parameters;
}

// The text within a function of its own, its lines those of "logits" in the compiler's log.
std::string source_of(const LogitsRecord& record) {
    std::string source =
        "    JITNEY_DEVICE static float edit_by_caller(\n"
        "        [[maybe_unused]] float score, [[maybe_unused]] const LogitPlace& at,\n"
        "        [[maybe_unused]] const unsigned long long (&values)[4]) {\n";
    for (const char* name : {"batch", "head", "query", "key", "place", "q_len", "kv_len"}) {
        source += fmt::format("        [[maybe_unused]] const int {0} = at.{0};\n", name);
    }
    for (std::size_t i = 0; i < record.parameters.size(); ++i) {
        const Parameter& parameter = record.parameters[i];
        source += fmt::format(
            "#line {0} \"logits parameters\"\n"
            "        [[maybe_unused]] const auto {2} = CallerValue<{1}>::of(values[{3}]);\n",
            i + 1, parameter.type, parameter.name, i);
    }
    const bool statements = has_word(record.text, "return");
    source +=
        fmt::format("{}#line 1 \"logits\"\n{}\n{}    }}\n", statements ? "" : "        return (\n",
                    record.text, statements ? "" : ");\n");
    return source;
}

std::string material_of(const LogitsRecord& record) {
    std::string material = "jitney-logits 1\n";
    for (const Parameter& parameter : record.parameters)
        material += fmt::format("{} {}\n", parameter.type, parameter.name);
    return material + "\n" + record.text;
}

// Every function that was made, for as long as the process lives.
class Records {
  public:
    const LogitsRecord* intern(std::unique_ptr<LogitsRecord> record) {
        const std::string material = material_of(*record);
        const std::lock_guard lock(mutex_);
        const auto [at, added] = by_digest_.try_emplace(record->digest);
        if (added) {
            at->second.material = material;
            at->second.record = std::move(record);
        } else if (at->second.material != material) {
            throw Error(ErrorCode::internal,
                        fmt::format("two logits functions share the digest {:016x}: add a blank to "
                                    "one of them",
                                    at->first));
        }
        return at->second.record.get();
    }

    const LogitsRecord* find(std::uint64_t digest) {
        const std::lock_guard lock(mutex_);
        const auto at = by_digest_.find(digest);
        return at == by_digest_.end() ? nullptr : at->second.record.get();
    }

  private:
    struct Entry {
        std::string material;
        std::unique_ptr<const LogitsRecord> record;
    };
    std::mutex mutex_;
    std::map<std::uint64_t, Entry> by_digest_;
};

Records& records() {
    static Records* const all = new Records;
    return *all;
}

}  // namespace

LogitsFunction::LogitsFunction(std::string_view text,
                               std::span<const std::string_view> parameters) {
    check_text(text);
    auto record = std::make_unique<LogitsRecord>();
    record->text = text;
    record->parameters = parse_parameters(parameters);
    const cache::Digest digest = cache::digest_of(material_of(*record));
    record->digest = std::max<std::uint64_t>(digest.low, 1);
    record->source = source_of(*record);
    record_ = records().intern(std::move(record));
}

LogitsFunction LogitsFunction::from_source(std::string_view source) {
    constexpr std::string_view keyword = "param ";
    std::vector<std::string_view> parameters;
    std::string text(source);
    // Declarations become empty lines, so that the others keep their numbers.
    for (std::size_t at = 0; at < source.size();) {
        const std::size_t end = std::min(source.find('\n', at), source.size());
        const std::string_view line = trimmed(source.substr(at, end - at));
        if (line.starts_with(keyword)) {
            parameters.push_back(line.substr(keyword.size()));
            text.replace(at, end - at, end - at, ' ');
        } else if (!line.empty()) {
            break;
        }
        at = end + 1;
    }
    return {text, parameters};
}

std::uint64_t LogitsFunction::digest() const noexcept {
    return record_ == nullptr ? 0 : record_->digest;
}

const std::string& logits_source(std::uint64_t digest, const std::string& specialization) {
    static const std::string none;
    if (digest == 0) return none;
    const LogitsRecord* record = records().find(digest);
    if (record == nullptr) {
        refuse(
            "{} has a logits function whose text is not known here: make a LogitsFunction of the "
            "text first, or give its file to jitney prewarm with --logits",
            specialization);
    }
    return record->source;
}

}  // namespace jitney
