#include "cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "cli/errors.hpp"

namespace jitney::cli {

namespace {

// The whole text as a number; nothing where it is none or too large, or so small that it is 0.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
}

// A part of a list of sizes or lengths: a whole number that is not negative. `form` says what the
// list must be.
std::int64_t part_of(std::string_view what, std::string_view all, std::string_view text,
                     std::string_view form) {
    const auto value = number_of<std::int64_t>(text);
    if (value && *value >= 0) return *value;
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    if (digits) {
        refuse(fmt::format("{} is \"{}\", and {} is more than 64 bits hold; it must be {}", what,
                           all, text, form));
    }
    refuse(fmt::format("{} is \"{}\", and must be {}", what, all, form));
}

}  // namespace

std::int64_t parse_integer(std::string_view what, std::string_view text, std::int64_t minimum,
                           std::int64_t maximum) {
    const auto value = number_of<std::int64_t>(text);
    if (!value || *value < minimum || *value > maximum) {
        refuse(fmt::format("{} is \"{}\", and must be a whole number from {} to {}", what, text,
                           minimum, maximum));
    }
    return *value;
}

double parse_real(std::string_view what, std::string_view text, double minimum, double maximum) {
    const auto value = number_of<double>(text);
    if (!value || !(*value >= minimum && *value <= maximum)) {
        refuse(
            fmt::format("{} is \"{}\", and must be a number from {:.2g} to {:.2g}, such as 0.125",
                        what, text, minimum, maximum));
    }
    return *value;
}

Shape parse_shape(std::string_view what, std::string_view text) {
    constexpr std::size_t kMaxDims = 5;
    const std::string form = fmt::format(
        "a shape of up to {} whole numbers that are not negative, such as 1,4096,32,128", kMaxDims);
    Shape shape;
    std::int64_t elements = 1;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        shape.push_back(part_of(what, text, text.substr(start, end - start), form));
        if (shape.size() > kMaxDims) {
            refuse(fmt::format("{} is \"{}\", and must be {}", what, text, form));
        }
        start = end + 1;
    }
    for (const std::int64_t size : shape) {
        // Eight bytes an element at most.
        if (size != 0 && elements > std::numeric_limits<std::int64_t>::max() / 8 / size) {
            refuse(fmt::format("{} is {}: more elements than can be addressed", what, text));
        }
        elements *= std::max<std::int64_t>(size, 1);
    }
    return shape;
}

std::vector<int> parse_lengths(std::string_view what, std::string_view text) {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    std::vector<int> ends{0};
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        const std::int64_t length = part_of(what, text, text.substr(start, end - start),
                                            "whole numbers that are not negative, such as 7,1,512");
        if (length > kMost - ends.back()) {
            refuse(fmt::format("{} are {} and more together, above {}", what, length, kMost));
        }
        ends.push_back(ends.back() + static_cast<int>(length));
        start = end + 1;
    }
    return ends;
}

std::string text_of_shape(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

CLI::Option* add_value(CLI::App& command, const std::string& names, const std::string& type,
                       const std::string& description, ReadValue read) {
    std::string option = names;
    if (const auto comma = names.find(','); comma != names.npos) option.replace(comma, 1, " or ");
    const auto read_text = [option, read = std::move(read)](const std::string& text) {
        read(option, text);
    };
    return command.add_option_function<std::string>(names, read_text, description)->type_name(type);
}

CLI::Option* add_choice(CLI::App& command, const std::string& names, std::vector<std::string> words,
                        const std::string& description, std::function<void(std::size_t)> choose) {
    const std::string form = fmt::format("{}", fmt::join(words, "|"));
    return add_value(command, names, form, description,
                     [words = std::move(words), choose = std::move(choose)](
                         const std::string& option, const std::string& text) {
                         const auto place = std::ranges::find(words, text);
                         if (place == words.end()) {
                             refuse(fmt::format("{} is \"{}\", and must be one of {}", option, text,
                                                fmt::join(words, ", ")));
                         }
                         choose(static_cast<std::size_t>(place - words.begin()));
                     });
}

CLI::Option* add_integer(CLI::App& command, const std::string& name, int& value, int minimum,
                         int maximum, const std::string& description) {
    return add_value(command, name, "N", description,
                     [=, &value](const std::string& option, const std::string& text) {
                         value = static_cast<int>(parse_integer(option, text, minimum, maximum));
                     });
}

CLI::Option* add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                       const std::string& type, const std::string& description) {
    return command.add_option(name, values, description)
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_word(CLI::App& command, const std::string& names, std::string& value,
                      const std::vector<std::string>& words, const std::string& description) {
    return add_choice(command, names, words, description,
                      [words, &value](std::size_t place) { value = words[place]; });
}

CLI::Option* add_format(CLI::App& command, const std::string& names, std::string& format,
                        const std::string& description) {
    return add_word(command, names, format, {"fp32", "fp16", "bf16"}, description);
}

void require_dims(const std::string& what, const Shape& shape, std::size_t dims,
                  const std::string& meaning) {
    if (shape.size() != dims) {
        refuse(fmt::format("{} is {}, and must be {}", what, text_of_shape(shape), meaning));
    }
}

}  // namespace jitney::cli
