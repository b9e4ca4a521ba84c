// Values of options: whole numbers, numbers and shapes, each checked, with a sentence where it
// can't be meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// `names` are those of one option: "--window-left", or "--out,--out-format".
using ReadValue = std::function<void(const std::string& option, const std::string& text)>;
CLI::Option* add_value(CLI::App& command, const std::string& names, const std::string& type,
                       const std::string& description, ReadValue read);
// One of a few words, told by its place.
CLI::Option* add_choice(CLI::App& command, const std::string& names, std::vector<std::string> words,
                        const std::string& description, std::function<void(std::size_t)> choose);
CLI::Option* add_integer(CLI::App& command, const std::string& name, int& value, int minimum,
                         int maximum, const std::string& description);
// Texts, as many as the option is given with.
CLI::Option* add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                       const std::string& type, const std::string& description);
CLI::Option* add_word(CLI::App& command, const std::string& names, std::string& value,
                      const std::vector<std::string>& words, const std::string& description);
// The format of tensors: fp32, fp16 or bf16.
CLI::Option* add_format(CLI::App& command, const std::string& names, std::string& format,
                        const std::string& description);
// Refuses a shape of another number of sizes than `meaning` names: "out_features,in_features".
void require_dims(const std::string& what, const Shape& shape, std::size_t dims,
                  const std::string& meaning);

}  // namespace jitney::cli
