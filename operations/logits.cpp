#include "jitney/logits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "cache/digest.hpp"
#include "operations/device_text.hpp"
#include "operations/logits_access.hpp"
#include "operations/logits_text.hpp"
#include "operations/refuse.hpp"

namespace jitney {
namespace {

using checks::refuse;
using detail::LogitsRecord;
using Parameter = LogitsRecord::Parameter;

constexpr std::string_view kNames[] = {"score", "batch", "head",   "query", "key",
                                       "place", "q_len", "kv_len", "at",    "values"};

// The declarations of a file have lines; else `lines` is empty.
std::vector<Parameter> parse_parameters(std::span<const std::string_view> declarations,
                                        std::span<const int> lines) {
    if (declarations.size() > kLogitsValues) {
        refuse("a logits function has {} parameters; it may have {}: put the rest into memory",
               declarations.size(), kLogitsValues);
    }
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < declarations.size(); ++i) {
        const int line = lines.empty() ? 0 : lines[i];
        checks::ParsedParameter parsed = checks::parse_logits_parameter(declarations[i], line);
        const bool taken =
            std::ranges::find(kNames, parsed.name) != std::end(kNames) ||
            std::ranges::find(parameters, parsed.name, &Parameter::name) != parameters.end();
        if (taken) {
            refuse("a logits function can't have the parameter '{}': the name is taken",
                   parsed.name);
        }
        parameters.push_back({std::move(parsed.type), std::move(parsed.name), parsed.kind, line});
    }
    return parameters;
}

constexpr std::string_view kBlanks = " \t\r\n";

// The text within a function of its own, its lines those of "logits" in the compiler's log, where
// it begins in `line`. What closes it counts as the last of them, so that no error lies beyond the
// caller's lines.
std::string source_of(const LogitsRecord& record, int line, bool statements) {
    std::string source =
        "    JITNEY_DEVICE static float edit_by_caller(\n"
        "        [[maybe_unused]] float score, [[maybe_unused]] const LogitPlace& at,\n"
        "        [[maybe_unused]] const unsigned long long (&values)[4]) {\n";
    for (const char* name : {"batch", "head", "query", "key", "place", "q_len", "kv_len"}) {
        source += fmt::format("        [[maybe_unused]] const int {0} = at.{0};\n", name);
    }
    for (std::size_t i = 0; i < record.parameters.size(); ++i) {
        const Parameter& parameter = record.parameters[i];
        const bool in_file = parameter.line != 0;
        source += fmt::format(
            "#line {0} \"logits{1}\"\n"
            "        [[maybe_unused]] const auto {3} = CallerValue<{2}>::of(values[{4}]);\n",
            in_file ? static_cast<std::size_t>(parameter.line) : i + 1,
            in_file ? "" : " parameters", parameter.type, parameter.name, i);
    }
    const auto last = line + std::ranges::count(record.text, '\n');
    // The empty line ends what a backslash may have begun.
    source += fmt::format("{}#line {} \"logits\"\n{}\n\n#line {} \"logits\"\n{}    }}\n",
                          statements ? "" : "        return (\n", line, record.text, last,
                          statements ? "" : ");\n");
    return source + "#line 1 \"jitney.cu behind logits\"\n";
}

// As if its text had been given without anything around it, and its declarations beside it.
std::string source_of_key(const LogitsRecord& record, bool statements) {
    LogitsRecord plain;
    plain.text = record.text;
    plain.parameters = record.parameters;
    for (Parameter& parameter : plain.parameters)
        parameter.line = 0;
    return source_of(plain, 1, statements);
}

std::string material_of(const LogitsRecord& record) {
    std::string material = "jitney-logits 1\n";
    for (const Parameter& parameter : record.parameters) {
        material += fmt::format("{} {}\n", parameter.type, parameter.name);
    }
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
                        fmt::format("two logits functions share the digest {:016x}: add a comment "
                                    "to one of them",
                                    at->first));
        }
        return at->second.record.get();
    }

    const LogitsRecord* find(std::uint64_t digest) {
        const std::lock_guard lock(mutex_);
        const auto at = by_digest_.find(digest);
        return at == by_digest_.end() ? nullptr : at->second.record.get();
    }

    // "00c0ffee12345678, ..."; "none" where none was made.
    std::string digests() {
        constexpr std::size_t most = 8;
        const std::lock_guard lock(mutex_);
        std::string all;
        std::size_t shown = 0;
        for (const auto& [digest, entry] : by_digest_) {
            if (++shown > most) break;
            all += fmt::format("{}{:016x}", all.empty() ? "" : ", ", digest);
        }
        if (by_digest_.size() > most) all += fmt::format(" and {} more", by_digest_.size() - most);
        return all.empty() ? "none" : all;
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

const LogitsRecord* make_record(std::string_view text, std::span<const std::string_view> parameters,
                                std::span<const int> lines) {
    const bool statements = checks::check_logits_text(text);
    auto record = std::make_unique<LogitsRecord>();
    const std::size_t first = text.find_first_not_of(kBlanks);
    record->text = text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
    record->line += static_cast<int>(std::ranges::count(text.substr(0, first), '\n'));
    record->parameters = parse_parameters(parameters, lines);
    const cache::Digest digest = cache::digest_of(material_of(*record));
    record->digest = std::max<std::uint64_t>(digest.low, 1);
    record->source = {source_of(*record, record->line, statements),
                      source_of_key(*record, statements)};
    return records().intern(std::move(record));
}

}  // namespace

LogitsFunction::LogitsFunction(std::string_view text, std::span<const std::string_view> parameters)
    : record_(make_record(checks::with_plain_newlines(text), parameters, {})) {}

LogitsFunction LogitsFunction::from_source(std::string_view given) {
    constexpr std::string_view keyword = "param";
    const std::string plain = checks::with_plain_newlines(given);
    const std::string_view source = plain;
    std::vector<std::string_view> parameters;
    std::vector<int> lines;
    std::string text;
    // Declarations become empty lines, so that the others keep their numbers.
    int number = 1;
    for (std::size_t at = 0; at < source.size(); ++number) {
        const std::size_t end = std::min(source.find('\n', at), source.size());
        std::string_view line = source.substr(at, end - at);
        line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
        const bool declares = line.starts_with(keyword) && line.size() > keyword.size() &&
                              kBlanks.find(line[keyword.size()]) != std::string_view::npos;
        if (declares) {
            parameters.push_back(line.substr(keyword.size()));
            lines.push_back(number);
        } else if (!line.empty()) {
            text += source.substr(at);
            break;
        }
        text += '\n';
        at = end + 1;
    }
    return LogitsAccess::of(make_record(text, parameters, lines));
}

std::uint64_t LogitsFunction::digest() const noexcept {
    return record_ == nullptr ? 0 : record_->digest;
}

const LogitsSource& logits_source(std::uint64_t digest, const std::string& specialization) {
    static const LogitsSource none;
    if (digest == 0) return none;
    const LogitsRecord* record = records().find(digest);
    if (record == nullptr) {
        refuse(
            "{} has a logits function whose text is not known here: make a LogitsFunction of the "
            "text first, or give its file to jitney prewarm with --logits (of digests that are "
            "known here: {})",
            specialization, records().digests());
    }
    return record->source;
}

}  // namespace jitney
