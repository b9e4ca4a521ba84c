// Standard output, and the forms in which people read numbers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace jitney::cli {

// Fields keep the order in which they are set.
using Json = nlohmann::ordered_json;

void print(std::string_view text);
// One line, whatever text the sentence quotes.
void print_sentence(std::string_view sentence);
void print_json(const Json& value);

// Writes out what was printed. Throws Error (io) where it could not be written.
void flush_output();

// Rows in aligned columns; a column whose header ends in '>' is aligned to the right. Cells are
// shown as printable text, and one of more than 160 characters does not widen the others.
class Table {
  public:
    explicit Table(std::vector<std::string> header);
    void add(std::vector<std::string> row);
    std::string text() const;

  private:
    std::vector<std::vector<std::string>> rows_;
    std::vector<bool> right_;
};

// "23.4 KiB"
std::string text_of_bytes(std::uint64_t bytes);
// "2025-11-29 20:46:20", in UTC
std::string text_of_time(std::int64_t seconds);
// "s" unless there is one
std::string_view plural(std::uint64_t count, std::string_view one = "",
                        std::string_view many = "s");

}  // namespace jitney::cli
