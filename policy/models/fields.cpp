#include "policy/models/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/printable.hpp"
#include "jitney/error.hpp"

namespace jitney::policy {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& sentence) {
    throw Error(ErrorCode::invalid_argument, sentence);
}

std::string text_of(const json& value) {
    constexpr std::size_t kMost = 60;
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > kMost) text = text.substr(0, kMost) + "...";
    return text;
}

// The text with Infinity, -Infinity and NaN, which Python writes for such numbers, in quotes: a
// field that is asked for a number then refuses them by name, and the others may hold them.
std::string with_quoted_constants(std::string_view text) {
    constexpr std::array<std::string_view, 3> kConstants = {"-Infinity", "Infinity", "NaN"};
    std::string result;
    result.reserve(text.size());
    bool in_string = false;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (!in_string && (c == '-' || c == 'I' || c == 'N')) {
            const auto found = std::find_if(
                kConstants.begin(), kConstants.end(),
                [&](std::string_view constant) { return text.substr(at).starts_with(constant); });
            if (found != kConstants.end()) {
                result.append("\"").append(*found).append("\"");
                at += found->size();
                continue;
            }
        }
        if (c == '"') in_string = !in_string;
        result += c;
        ++at;
        if (in_string && c == '\\' && at < text.size()) result += text[at++];
    }
    return result;
}

// Refuses what the parser lets pass: of two fields of one name it keeps the last, and it nests
// without end.
class Names {
  public:
    explicit Names(const std::string& file) : file_(file) {}

    bool operator()(int depth, json::parse_event_t event, json& parsed) {
        // The printing of a value goes down into it by recursion.
        if (depth > kMaxDepth) {
            refuse(fmt::format("{} is no JSON of a configuration: it is nested more than {} deep",
                               file_, kMaxDepth));
        }
        if (event == json::parse_event_t::object_start) open_.emplace_back();
        if (event == json::parse_event_t::object_end) open_.pop_back();
        if (event == json::parse_event_t::key && !open_.back().insert(parsed.dump()).second) {
            refuse(fmt::format("{} names {} twice", file_, text_of(parsed)));
        }
        return true;
    }

  private:
    static constexpr int kMaxDepth = 64;

    const std::string& file_;
    std::vector<std::set<std::string>> open_;  // the names of each object that is being read
};

std::optional<int> whole(const json& value, int minimum, int maximum) {
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(maximum)
                          : value.is_number_integer() && value.get<std::int64_t>() <= maximum;
    if (!fits || value.get<std::int64_t>() < minimum) return std::nullopt;
    return static_cast<int>(value.get<std::int64_t>());
}

}  // namespace

Fields Fields::parse(std::string file, std::string_view text) {
    auto root = std::make_shared<json>();
    try {
        Names names(file);
        *root = json::parse(with_quoted_constants(text),
                            [&names](int depth, json::parse_event_t event, json& parsed) {
                                return names(depth, event, parsed);
                            });
    } catch (const json::exception& error) {
        // "[json.exception....] reason; last read: ...", where what was read may be any bytes
        std::string_view reason = error.what();
        reason.remove_prefix(std::min(reason.find(' ') + 1, reason.size()));
        reason = reason.substr(0, reason.find("; last read"));
        refuse(fmt::format("{} is no JSON: {}", file, printable(reason)));
    }
    if (!root->is_object()) {
        refuse(fmt::format("{} holds {}, and must hold an object", file, text_of(*root)));
    }
    const json* const fields = root.get();
    return {std::move(file), "", std::move(root), fields};
}

const json* Fields::find(std::string_view name) const {
    const auto found = fields_->find(std::string(name));
    return found == fields_->end() || found->is_null() ? nullptr : &*found;
}

bool Fields::is_null(std::string_view name) const {
    const auto found = fields_->find(std::string(name));
    return found != fields_->end() && found->is_null();
}

std::vector<std::string> Fields::names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : fields_->items())
        names.push_back(name);
    return names;
}

std::string Fields::shown(std::string_view name) const {
    return text_of(*find(name));
}

bool Fields::text_is(std::string_view name, std::string_view value) const {
    return is_text(name) && *text(name) == value;
}

bool Fields::is_number(std::string_view name) const {
    return has(name) && find(name)->is_number();
}

bool Fields::is_text(std::string_view name) const {
    return has(name) && find(name)->is_string();
}

bool Fields::is_boolean(std::string_view name) const {
    return has(name) && find(name)->is_boolean();
}

bool Fields::is_object(std::string_view name) const {
    return has(name) && find(name)->is_object();
}

bool Fields::is_list(std::string_view name) const {
    return has(name) && find(name)->is_array();
}

void Fields::refuse_value(std::string_view name, std::string_view meaning) const {
    refuse(
        fmt::format("{} of {} is {}, and must be {}", path_of(name), file_, shown(name), meaning));
}

std::optional<int> Fields::integer(std::string_view name, int minimum, int maximum) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    const std::optional<int> number = whole(*value, minimum, maximum);
    if (!number) refuse_value(name, fmt::format("a whole number from {} to {}", minimum, maximum));
    return number;
}

std::optional<std::vector<int>> Fields::integers(std::string_view name, int minimum, int maximum,
                                                 std::optional<int> absent) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) return std::vector<int>{*integer(name, minimum, maximum)};
    std::vector<int> numbers;
    for (const json& each : *value) {
        const std::optional<int> number = each.is_null() ? absent : whole(each, minimum, maximum);
        if (!number) {
            refuse_value(name,
                         fmt::format("a whole number from {} to {}, or a list of such numbers",
                                     minimum, maximum));
        }
        numbers.push_back(*number);
    }
    if (numbers.empty()) return std::nullopt;
    return numbers;
}

std::optional<double> Fields::real(std::string_view name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
        refuse_value(name, "a finite number");
    }
    return value->get<double>();
}

std::optional<bool> Fields::boolean(std::string_view name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse_value(name, "true or false");
    return value->get<bool>();
}

std::optional<std::string> Fields::text(std::string_view name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse_value(name, "a string");
    return value->get<std::string>();
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    std::vector<std::string> result;
    if (!value->is_array()) refuse_value(name, "a list of strings");
    for (const json& each : *value) {
        if (!each.is_string()) refuse_value(name, "a list of strings");
        result.push_back(each.get<std::string>());
    }
    return result;
}

std::optional<std::vector<std::pair<std::vector<std::string>, int>>> Fields::repeated_texts(
    std::string_view name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    constexpr std::string_view kMeaning = "a list of pairs such as [[\"global\", \"local\"], 12]";
    constexpr int kMostTimes = 100000;
    std::vector<std::pair<std::vector<std::string>, int>> result;
    if (!value->is_array()) refuse_value(name, kMeaning);
    for (const json& pair : *value) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_array()) {
            refuse_value(name, kMeaning);
        }
        const std::optional<int> times = whole(pair[1], 1, kMostTimes);
        if (!times) refuse_value(name, kMeaning);
        result.emplace_back(std::vector<std::string>{}, *times);
        for (const json& each : pair[0]) {
            if (!each.is_string()) refuse_value(name, kMeaning);
            result.back().first.push_back(each.get<std::string>());
        }
    }
    return result;
}

std::optional<Fields> Fields::object(std::string_view name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) refuse_value(name, "an object");
    return Fields(file_, path_of(name) + ".", root_, value);
}

std::vector<Fields> Fields::objects(std::string_view name) const {
    const json* const value = find(name);
    std::vector<Fields> result;
    if (value == nullptr) return result;
    if (!value->is_array()) refuse_value(name, "a list of objects");
    for (const json& each : *value) {
        if (!each.is_object()) refuse_value(name, "a list of objects");
        result.push_back(
            Fields(file_, fmt::format("{}[{}].", path_of(name), result.size()), root_, &each));
    }
    return result;
}

}  // namespace jitney::policy
