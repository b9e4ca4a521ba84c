#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "jitney/error.hpp"

namespace jitney::cli {

namespace {

[[noreturn]] void fail() {
    throw Error(ErrorCode::io,
                fmt::format("can't write to standard output: {}", std::strerror(errno)));
}

// Characters, not bytes.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

}  // namespace

void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void print_sentence(std::string_view sentence) {
    print(printable(sentence) + "\n");
}

void print_json(const Json& value) {
    // A path may hold any bytes; JSON is UTF-8.
    print(value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void flush_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail();
}

Table::Table(std::vector<std::string> header) {
    for (std::string& title : header) {
        right_.push_back(title.ends_with('>'));
        if (right_.back()) title.pop_back();
    }
    rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
    row.resize(right_.size());
    for (std::string& cell : row)
        cell = printable(cell);
    rows_.push_back(std::move(row));
}

std::string Table::text() const {
    constexpr std::size_t kWidest = 160;
    std::vector<std::size_t> widths(right_.size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::min(std::max(widths[i], width_of(row[i])), kWidest);
    }
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::size_t width = width_of(row[i]);
            const std::string space(widths[i] > width ? widths[i] - width : 0, ' ');
            if (i != 0) line += "  ";
            line += right_[i] ? space + row[i] : row[i] + space;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string text_of_bytes(std::uint64_t bytes) {
    constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) return fmt::format("{} B", bytes);
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string text_of_time(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    if (::gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
    return text.data();
}

std::string_view plural(std::uint64_t count, std::string_view one, std::string_view many) {
    return count == 1 ? one : many;
}

}  // namespace jitney::cli
