#include "operations/logits_text.hpp"
#include "operations/logits_names.hpp"

#include <algorithm>
#include <vector>

#include "operations/device_text.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

constexpr std::size_t kMaxText = 8192;
constexpr std::string_view kBlanks = " \t\r\n";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

void check_characters(std::string_view text, const char* what) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) >= 0x20 || kBlanks.find(c) != std::string_view::npos) {
            continue;
        }
        refuse("{} of a logits function contains the byte {:#x}; it must be plain text", what,
               static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
}

// Turns comments and what stands in quotes into blanks, so that what is left is code on the lines
// where it was.
class Code {
  public:
    explicit Code(std::string_view text) : text_(text), code_(text) {}

    std::string take() {
        while (at_ < text_.size()) {
            if (text_.substr(at_, 2) == "//") {
                blank_line();
            } else if (text_.substr(at_, 2) == "/*") {
                blank_comment();
            } else if (text_[at_] == '"' || (text_[at_] == '\'' && !in_number())) {
                blank_quotes();
            } else {
                step();
            }
        }
        return std::move(code_);
    }

  private:
    void step() {
        if (text_[at_] == '\n') ++line_;
        ++at_;
    }
    void blank() {
        if (text_[at_] != '\n') code_[at_] = ' ';
        step();
    }

    // 1'000
    bool in_number() const {
        std::size_t first = at_;
        while (first > 0 && (is_word(text_[first - 1]) || text_[first - 1] == '\''))
            --first;
        return first < at_ && is_digit(text_[first]);
    }

    // To the end of the line, and on where that is taken back by a backslash.
    void blank_line() {
        while (at_ < text_.size() && (text_[at_] != '\n' || text_[at_ - 1] == '\\'))
            blank();
    }

    void blank_comment() {
        const int begin = line_;
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
            refuse("line {} of a logits function begins a comment that does not end: close it",
                   begin);
        }
        while (at_ < end + 2)
            blank();
    }

    void blank_quotes() {
        const char quote = text_[at_];
        if (at_ > 0 && quote == '"' && text_[at_ - 1] == 'R') {
            refuse("line {} of a logits function has a raw string; write it as a plain one", line_);
        }
        blank();
        while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
            if (text_[at_] == '\\' && at_ + 1 < text_.size()) blank();
            blank();
        }
        if (at_ >= text_.size() || text_[at_] != quote) {
            refuse("line {} of a logits function has a quote that does not end: close it", line_);
        }
        blank();
    }

    std::string_view text_;
    std::string code_;
    std::size_t at_ = 0;
    int line_ = 1;
};

// A line that is a directive, without its '#'; empty where it is none.
std::string_view directive(std::string_view line) {
    line = trimmed(line);
    if (line.starts_with('#')) return trimmed(line.substr(1));
    if (line.starts_with("%:")) return trimmed(line.substr(2));
    return {};
}

// Whether the code has directives, none of which may include, or count lines anew.
bool check_directives(std::string_view code) {
    bool found = false;
    int number = 1;
    while (!code.empty()) {
        const int first = number;
        std::string line;  // with those that a backslash joins to it
        bool more = true;
        while (more && !code.empty()) {
            const std::size_t end = std::min(code.find('\n'), code.size());
            line += code.substr(0, end);
            code.remove_prefix(std::min(end + 1, code.size()));
            ++number;
            more = line.ends_with('\\');
            if (more) line.pop_back();
        }
        const std::string_view word = directive(line);
        found = found || !word.empty();
        if (word.starts_with("include") || word.starts_with("import") ||
            word.starts_with("embed")) {
            refuse("line {} of a logits function includes a file; write what it needs in the text",
                   first);
        }
        if (word.starts_with("line")) {
            refuse(
                "line {} of a logits function is a #line; leave it out, errors are told by the "
                "lines of the text",
                first);
        }
    }
    return found;
}

void check_brackets(std::string_view code) {
    struct Open {
        char bracket;
        int line;
    };
    std::vector<Open> open;
    int line = 1;
    for (const char c : code) {
        if (c == '\n') ++line;
        if (c == '(' || c == '[' || c == '{') open.push_back({c, line});
        if (c != ')' && c != ']' && c != '}') continue;
        const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
        if (open.empty() || open.back().bracket != opening) {
            refuse("line {} of a logits function closes a '{}' that is not open: correct it", line,
                   opening);
        }
        open.pop_back();
    }
    if (open.empty()) return;
    refuse("line {} of a logits function opens a '{}' that is never closed: correct it",
           open.back().line, open.back().bracket);
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        if (!is_word(text[at])) {
            if (text[at] == '*') words.emplace_back("*");
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && is_word(text[end]))
            ++end;
        words.emplace_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() || word == "*" ? "" : " ") + word;
    return text;
}

// The compiler tells what is no type that a pointer can point to.
LogitsValue::Kind kind_of(const std::vector<std::string>& words) {
    if (!words.empty() && words.front() != "*" && words.back() == "*") {
        return LogitsValue::Kind::pointer;
    }
    const std::string type = joined(words);
    if (type == "float") return LogitsValue::Kind::fp32;
    if (type == "int") return LogitsValue::Kind::int32;
    if (type == "long long") return LogitsValue::Kind::int64;
    return LogitsValue::Kind::none;
}

}  // namespace

bool check_logits_text(std::string_view text) {
    if (trimmed(text).empty()) {
        refuse("the text of a logits function is empty; give an expression such as 'score'");
    }
    if (const std::size_t size = trimmed(text).size(); size > kMaxText) {
        refuse("the text of a logits function has {} characters, more than {}: shorten it", size,
               kMaxText);
    }
    check_characters(text, "the text");
    const std::string code = Code(text).take();
    if (trimmed(code).empty()) {
        refuse("the text of a logits function is a comment; give an expression such as 'score'");
    }
    // Brackets that stand in branches of an #if are the compiler's to match.
    if (!check_directives(code)) check_brackets(code);
    check_logits_names(text, code);
    const bool statements = has_word(code, "return");
    if (code.find(';') != std::string::npos && !statements) {
        refuse(
            "the text of a logits function has statements and returns nothing: let it return the "
            "new score, or make it one expression without ';'");
    }
    return statements;
}

ParsedParameter parse_logits_parameter(std::string_view declaration, int line) {
    check_characters(declaration, "a parameter");
    check_logits_names(declaration, declaration);
    const std::string_view text = trimmed(declaration);
    std::size_t name = text.size();
    while (name > 0 && is_word(text[name - 1]))
        --name;
    const std::string_view type = text.substr(0, name);
    const std::vector<std::string> words = words_of(type);
    const bool odd = std::ranges::any_of(type, [](char c) {
        return !is_word(c) && c != '*' && kBlanks.find(c) == std::string_view::npos;
    });
    ParsedParameter parsed{joined(words), std::string(text.substr(name)),
                           odd ? LogitsValue::Kind::none : kind_of(words)};
    const bool named = !parsed.name.empty() && !is_digit(parsed.name[0]);
    if (named && parsed.kind != LogitsValue::Kind::none) return parsed;
    refuse(
        "{}'{}' is no parameter of a logits function; declare a pointer, float, int or long long, "
        "such as 'const float* slopes'",
        line == 0 ? "" : fmt::format("line {}: ", line), text.substr(0, 80));
}

}  // namespace jitney::checks
