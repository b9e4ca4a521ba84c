#include "cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/errors.hpp"

namespace jitney::cli {

namespace {

// The whole text as a number; nothing where it is none or too large.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
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

double parse_real(std::string_view what, std::string_view text) {
    const auto value = number_of<double>(text);
    if (!value || !std::isfinite(*value)) {
        refuse(fmt::format("{} is \"{}\", and must be a finite number such as 0.125", what, text));
    }
    return *value;
}

Shape parse_shape(std::string_view what, std::string_view text) {
    constexpr std::size_t kMaxDims = 5;
    Shape shape;
    std::int64_t elements = 1;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        const auto size = number_of<std::int64_t>(text.substr(start, end - start));
        if (!size || *size < 0 || shape.size() == kMaxDims) {
            refuse(
                fmt::format("{} is \"{}\", and must be a shape of up to {} whole numbers that are "
                            "not negative, such as 1,4096,32,128",
                            what, text, kMaxDims));
        }
        shape.push_back(*size);
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
        const auto length = number_of<std::int64_t>(text.substr(start, end - start));
        if (!length || *length < 0) {
            refuse(
                fmt::format("{} is \"{}\", and must be whole numbers that are not negative, such "
                            "as 7,1,512",
                            what, text));
        }
        if (*length > kMost - ends.back()) {
            refuse(fmt::format("{} are {} and more together, above {}", what, *length, kMost));
        }
        ends.push_back(ends.back() + static_cast<int>(*length));
        start = end + 1;
    }
    return ends;
}

std::string text_of_shape(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

CLI::Option* add_integer(CLI::App& command, const std::string& name, int& value, int minimum,
                         int maximum, const std::string& description) {
    const auto read = [=, &value](const std::string& text) {
        value = static_cast<int>(parse_integer(name, text, minimum, maximum));
    };
    return command.add_option_function<std::string>(name, read, description)->type_name("N");
}

CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<double>& value,
                      const std::string& description) {
    const auto read = [=, &value](const std::string& text) { value = parse_real(name, text); };
    return command.add_option_function<std::string>(name, read, description)->type_name("X");
}

CLI::Option* add_shape(CLI::App& command, const std::string& name, Shape& value,
                       const std::string& description) {
    const auto read = [=, &value](const std::string& text) { value = parse_shape(name, text); };
    return command.add_option_function<std::string>(name, read, description)->type_name("SHAPE");
}

CLI::Option* add_lengths(CLI::App& command, const std::string& name, std::vector<int>& ends,
                         const std::string& description) {
    const auto read = [=, &ends](const std::string& text) { ends = parse_lengths(name, text); };
    return command.add_option_function<std::string>(name, read, description)->type_name("LENGTHS");
}

CLI::Option* add_word(CLI::App& command, const std::string& name, std::string& value,
                      std::vector<std::string> words, const std::string& description) {
    const std::string form = fmt::format("{}", fmt::join(words, "|"));
    const auto read = [=, &value](const std::string& text) {
        if (std::find(words.begin(), words.end(), text) == words.end()) {
            refuse(fmt::format("{} is \"{}\", and must be one of {}", name, text,
                               fmt::join(words, ", ")));
        }
        value = text;
    };
    return command.add_option_function<std::string>(name, read, description)->type_name(form);
}

}  // namespace jitney::cli
