#include "api/own_kernel_text.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "api/own_kernel_options.hpp"
#include "core/printable.hpp"
#include "operations/device_text.hpp"
#include "operations/refuse.hpp"

namespace jitney {
namespace {

using checks::refuse;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::uint32_t kMostShared = 1 << 24;  // more than any GPU has
constexpr std::size_t kMostFunction = 1024;
constexpr std::size_t kMostName = 256;

std::size_t line_of(std::string_view text, std::size_t at) {
    return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

// A text of `name` ("the header tile.cuh") is what a person can read.
std::string plain_text(const std::string& text, const std::string& name) {
    if (text.size() > kMostBytes) {
        refuse("{} has {} bytes, more than {}: give less", name, text.size(), kMostBytes);
    }
    std::string plain = checks::with_plain_newlines(text);
    const std::string shown = printable_lines(plain);
    if (shown != plain) {
        const auto at =
            static_cast<std::size_t>(std::ranges::mismatch(plain, shown).in1 - plain.begin());
        refuse("line {} of {} holds {}, which is no plain text in UTF-8: take it out",
               line_of(plain, at), name, shown.substr(at, shown[at] == '\\' ? 4 : 1));
    }
    return plain;
}

// One that goes into a line of the program, or into a sentence.
void check_line(const std::string& text, std::size_t most, const std::string& name) {
    if (text.size() > most) {
        refuse("{} has {} characters, more than {}: shorten it", name, text.size(), most);
    }
    if (printable(text) != text) {
        refuse("{} holds characters that can't be shown: '{}'", name, text.substr(0, 80));
    }
}

void check_file(const std::string& file) {
    check_line(file, kMostName, "the file name of a kernel");
    const auto is_plain = [](char c) {
        return checks::is_word(c) || std::string_view("./+-").find(c) != std::string_view::npos;
    };
    if (file.empty() || !std::ranges::all_of(file, is_plain)) {
        refuse(
            "'{}' is no name for the text of a kernel: it is made of letters, digits and _ . + - "
            "/, "
            "such as saxpy.cu",
            file);
    }
    if (file.front() == '/') {
        refuse(
            "'{}' is a path of this machine, and stands in the key of the kernel, which is to be "
            "the same on every other: give its last part alone",
            file);
    }
}

void check_function(const KernelCode& code) {
    if (std::ranges::all_of(code.function, [](char c) { return c == ' '; })) {
        refuse(
            "the kernel {} names no function: give that of a __global__ function in its text, such "
            "as 'saxpy' or 'own::scale<float>'",
            code.file);
    }
    check_line(code.function, kMostFunction,
               fmt::format("the name of the function of the kernel {}", code.file));
}

bool is_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, checks::is_word) &&
           !(text.front() >= '0' && text.front() <= '9');
}

void check_constants(const KernelCode& code) {
    for (const KernelConstant& constant : code.constants) {
        const std::string name = fmt::format("the constant '{}' of the kernel {}",
                                             constant.name.substr(0, 80), code.file);
        check_line(constant.name, kMostName, "the name of a constant");
        if (!is_name(constant.name) || constant.name.starts_with("__") ||
            constant.name == "defined") {
            refuse(
                "{} has no name for a macro: it is one of letters, digits and _, and does not "
                "begin "
                "with a digit or with __",
                name);
        }
        check_line(constant.value, kMostFunction, "the value of " + name);
        if (constant.value.ends_with('\\') || constant.value.ends_with("?\?/") ||
            constant.value.find("/*") != std::string::npos) {
            refuse("{} has a value that goes on behind its line, '{}': make it one line", name,
                   constant.value);
        }
    }
    const auto twice = std::ranges::adjacent_find(code.constants, {}, &KernelConstant::name);
    if (twice != code.constants.end()) {
        refuse("the kernel {} has two constants '{}': leave one out", code.file, twice->name);
    }
}

void check_headers(const KernelCode& code) {
    for (const KernelHeader& header : code.headers) {
        check_line(header.name, kMostName, "the name of a header");
        if (header.name.empty() || header.name.find_first_of("\"<>\\") != std::string::npos) {
            refuse("'{}' is no name of a header: give the one that the text includes it by",
                   header.name);
        }
    }
    const auto twice = std::ranges::adjacent_find(code.headers, {}, &KernelHeader::name);
    if (twice != code.headers.end()) {
        refuse("the kernel {} has two headers '{}': leave one out", code.file, twice->name);
    }
}

// Skips what the preprocessor takes for blank within a line of a caller's text, and whole
// comments.
void skip_blanks(std::string_view& text) {
    for (;;) {
        const std::size_t blanks = text.find_first_not_of(" \t");
        text.remove_prefix(std::min(blanks, text.size()));
        if (!text.starts_with("/*")) return;
        const std::size_t end = text.find("*/", 2);
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 2);
    }
}

std::string_view take_word(std::string_view& text) {
    const auto end = std::ranges::find_if_not(text, checks::is_word);
    const auto count = static_cast<std::size_t>(end - text.begin());
    const std::string_view word = text.substr(0, count);
    text.remove_prefix(count);
    return word;
}

// Adds what a text includes. Whatever looks like an #include counts, in comments and quotes too, so
// that none is missed.
void add_includes(const std::string& joined, const std::string& name,
                  std::set<std::string>& names) {
    for (const std::string_view mark : {"#", "%:", "?\?="}) {
        for (std::size_t at = joined.find(mark); at != std::string::npos;
             at = joined.find(mark, at + 1)) {
            std::string_view rest = std::string_view(joined).substr(at + mark.size());
            skip_blanks(rest);
            const std::string_view word = take_word(rest);
            if (word == "include_next" || word == "import" || word == "embed") {
                refuse("{} has an #{}, which takes what it finds: include a header by its name",
                       name, word);
            }
            if (word != "include") continue;
            skip_blanks(rest);
            const char close = rest.starts_with('"') ? '"' : rest.starts_with('<') ? '>' : '\0';
            const std::string_view line = rest.substr(0, rest.find('\n'));
            const std::size_t end = close == '\0' ? std::string_view::npos : line.find(close, 1);
            if (end == std::string_view::npos || end == 1) {
                refuse(
                    "{} has '#include {}', of which the text does not tell what it includes: write "
                    "the name of a header in quotes or angle brackets, in comments too",
                    name, line.substr(0, 80));
            }
            names.emplace(line.substr(1, end - 1));
        }
    }
}

// The texts of a code that the compiler sees, as the preprocessor joins their lines, with what each
// is called in a sentence.
std::vector<std::pair<std::string, std::string>> texts_of(const KernelCode& code) {
    std::vector<std::pair<std::string, std::string>> texts;
    texts.emplace_back("the text of the kernel " + code.file, checks::spliced(code.source));
    for (const KernelHeader& header : code.headers)
        texts.emplace_back("the header " + header.name, checks::spliced(header.text));
    for (const KernelConstant& constant : code.constants)
        texts.emplace_back("the constant " + constant.name, constant.value);
    texts.emplace_back("the function's name", code.function);
    return texts;
}

void check_names(const KernelCode& code) {
    std::vector<std::string> all;
    for (auto& [name, text] : texts_of(code)) {
        if (const std::string_view found = checks::name_of_day_or_file(text); !found.empty()) {
            refuse(
                "{} has {}, which makes different kernels of equal texts: leave it out, in "
                "comments "
                "too, and give what it stands for as a constant",
                name, found);
        }
        all.push_back(std::move(text));
    }
    if (const std::string_view name = checks::name_pasted(all); !name.empty()) {
        refuse(
            "the texts of the kernel {} paste tokens, and have words of which {} could be made, "
            "which makes different kernels of equal texts: rename one of the words",
            code.file, name);
    }
}

}  // namespace

KernelCode checked(const KernelCode& given) {
    KernelCode code = given;
    check_file(code.file);
    code.source = plain_text(given.source, "the text of the kernel " + code.file);
    if (code.source.find_first_not_of(" \t\n") == std::string::npos) {
        refuse("the text of the kernel {} is empty: give CUDA C++ with a __global__ function",
               code.file);
    }
    check_function(code);
    std::ranges::sort(code.constants, {}, &KernelConstant::name);
    check_constants(code);
    std::ranges::sort(code.headers, {}, &KernelHeader::name);
    check_headers(code);
    for (KernelHeader& header : code.headers)
        header.text = plain_text(header.text, "the header " + header.name);
    check_options(code.options, code.file);
    if (code.shared_bytes > kMostShared) {
        refuse("the kernel {} asks for {} bytes of shared memory a block, more than any GPU has",
               code.file, code.shared_bytes);
    }
    check_names(code);
    included_names(code);  // or an error
    return code;
}

std::vector<std::string> included_names(const KernelCode& code) {
    std::set<std::string> names;
    for (const auto& [name, text] : texts_of(code))
        add_includes(text, name, names);
    return {names.begin(), names.end()};
}

}  // namespace jitney
