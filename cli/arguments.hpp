// Values of options: whole numbers, numbers and shapes, each checked, with a sentence where it
// can't be meant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace jitney::cli {

using Shape = std::vector<std::int64_t>;

// `what` is how the sentence calls the value: "--jobs". Throw Error (invalid_argument).
std::int64_t parse_integer(std::string_view what, std::string_view text, std::int64_t minimum,
                           std::int64_t maximum);
double parse_real(std::string_view what, std::string_view text, double minimum, double maximum);
// "1,4096,32,128": between one and five dimensions, whose product an int64 holds.
Shape parse_shape(std::string_view what, std::string_view text);

// "7,1,512": any number of lengths, as the places where they end, one behind the other: 0,7,8,520.
std::vector<int> parse_lengths(std::string_view what, std::string_view text);

// "[1, 4096, 32, 128]"
std::string text_of_shape(const Shape& shape);

CLI::Option* add_integer(CLI::App& command, const std::string& name, int& value, int minimum,
                         int maximum, const std::string& description);
CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<double>& value,
                      double minimum, double maximum, const std::string& description);
CLI::Option* add_shape(CLI::App& command, const std::string& name, Shape& value,
                       const std::string& description);
CLI::Option* add_lengths(CLI::App& command, const std::string& name, std::vector<int>& ends,
                         const std::string& description);
// Texts, as many as the option is given with.
CLI::Option* add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                       const std::string& type, const std::string& description);
// One of a few words.
CLI::Option* add_word(CLI::App& command, const std::string& name, std::string& value,
                      std::vector<std::string> words, const std::string& description);

}  // namespace jitney::cli
