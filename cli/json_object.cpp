#include "cli/json_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/errors.hpp"
#include "cli/file.hpp"

namespace jitney::cli {

namespace {

using nlohmann::json;

// As a message shows it: on one line, and not longer than that.
std::string shown(const json& value) {
    constexpr std::size_t kMost = 60;
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > kMost) text = text.substr(0, kMost) + "...";
    return text;
}

// What the parser lets pass: of two fields of one name it keeps the last, and it nests without end.
class Names {
  public:
    explicit Names(const std::string& file) : file_(file) {}

    bool operator()(int depth, json::parse_event_t event, json& parsed) {
        // What copies and prints a value goes down into it by recursion.
        if (depth > kMaxDepth) {
            refuse(fmt::format("{} is no JSON of a configuration: it is nested more than {} deep",
                               file_, kMaxDepth));
        }
        if (event == json::parse_event_t::object_start) open_.emplace_back();
        if (event == json::parse_event_t::object_end) open_.pop_back();
        if (event == json::parse_event_t::key && !open_.back().insert(parsed.dump()).second) {
            refuse(fmt::format("{} names {} twice", file_, shown(parsed)));
        }
        return true;
    }

  private:
    static constexpr int kMaxDepth = 64;

    const std::string& file_;
    std::vector<std::set<std::string>> open_;  // the names of each object that is being read
};

}  // namespace

JsonObject JsonObject::read(const std::string& path) {
    constexpr std::uint64_t kMaxBytes = 1 << 20;
    const std::string content = read_text(path, kMaxBytes, "a configuration");
    json fields;
    try {
        Names names(path);
        fields = json::parse(content, [&names](int depth, json::parse_event_t event, json& parsed) {
            return names(depth, event, parsed);
        });
    } catch (const json::exception& error) {
        // "[json.exception....] reason; last read: ...", where what was read may be any bytes
        std::string_view reason = error.what();
        reason.remove_prefix(std::min(reason.find(' ') + 1, reason.size()));
        reason = reason.substr(0, reason.find("; last read"));
        refuse(fmt::format("{} is no JSON: {}", path, one_line(reason)));
    }
    if (!fields.is_object()) {
        refuse(fmt::format("{} holds {}, and must hold an object", path, shown(fields)));
    }
    return {path, "", std::move(fields)};
}

const json* JsonObject::find(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() || found->is_null() ? nullptr : &*found;
}

void JsonObject::refuse_value(const std::string& name, const std::string& meaning) const {
    refuse(fmt::format("{}{} of {} is {}, and must be {}", path_, name, file_, shown(*find(name)),
                       meaning));
}

std::optional<int> JsonObject::integer(const std::string& name, int minimum, int maximum) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    const bool fits = value->is_number_unsigned()
                          ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(maximum)
                          : value->is_number_integer() && value->get<std::int64_t>() <= maximum;
    if (!fits || value->get<std::int64_t>() < minimum) {
        refuse_value(name, fmt::format("a whole number from {} to {}", minimum, maximum));
    }
    return static_cast<int>(value->get<std::int64_t>());
}

std::optional<double> JsonObject::real(const std::string& name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
        refuse_value(name, "a finite number");
    }
    return value->get<double>();
}

std::optional<bool> JsonObject::boolean(const std::string& name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse_value(name, "true or false");
    return value->get<bool>();
}

std::optional<std::string> JsonObject::text(const std::string& name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse_value(name, "a string");
    return value->get<std::string>();
}

std::optional<std::vector<std::string>> JsonObject::texts(const std::string& name) const {
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

std::optional<JsonObject> JsonObject::object(const std::string& name) const {
    const json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) refuse_value(name, "an object");
    return JsonObject(file_, path_ + name + ".", *value);
}

}  // namespace jitney::cli
