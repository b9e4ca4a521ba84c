#include "operations/device_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace jitney::checks {
namespace {

constexpr std::string_view kNames[] = {"__DATE__",      "__TIME__",           "__TIMESTAMP__",
                                       "__has_include", "__has_include_next", "__has_embed"};

using Words = std::set<std::string_view>;

// The end of the comment, the text in quotes or the raw string that begins here, at the latest that
// of the text; the next character where none of them begins.
std::size_t end_of_token(std::string_view text, std::size_t at) {
    const auto behind = [&](std::string_view mark, std::size_t from) {
        const std::size_t found = text.find(mark, from);
        return found == std::string_view::npos ? text.size() : found + mark.size();
    };
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
    if (rest.starts_with("/*")) return behind("*/", at + 2);
    const char quote = rest.front();
    if (quote != '"' && quote != '\'') return at + 1;
    std::size_t word = at;  // that stands before it
    while (word > 0 && is_word(text[word - 1]))
        --word;
    const bool in_number = word < at && text[word] >= '0' && text[word] <= '9';
    if (quote == '\'' && in_number) return at + 1;  // 1'000
    const std::size_t open = text.find('(', at);
    if (quote == '"' && word < at && text[at - 1] == 'R' && open != std::string_view::npos) {
        return behind(fmt::format("){}\"", text.substr(at + 1, open - at - 1)), open);
    }
    for (std::size_t end = at + 1; end < text.size(); ++end) {
        if (text[end] == '\\') {
            ++end;
        } else if (text[end] == quote) {
            return end + 1;
        } else if (text[end] == '\n') {
            return end;
        }
    }
    return text.size();
}

// The code of a text alone, with blanks for comments and what stands in quotes.
std::string code_of(std::string_view text) {
    std::string code(text);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = end_of_token(text, at);
        if (end > at + 1)
            std::fill(code.begin() + static_cast<std::ptrdiff_t>(at),
                      code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
        at = end;
    }
    return code;
}

void add_words(std::string_view text, Words& words) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_word(text[end]))
            ++end;
        if (end > at) words.insert(text.substr(at, end - at));
        at = end + 1;
    }
}

// Whether the name is a row of two or more of the words.
bool is_joined_of(std::string_view name, const Words& words) {
    // Whether words make the first so many characters.
    std::vector<bool> made(name.size() + 1, false);
    made[0] = true;
    for (std::size_t end = 1; end <= name.size(); ++end) {
        for (std::size_t begin = 0; begin < end; ++begin) {
            const bool whole = begin == 0 && end == name.size();
            if (made[begin] && !whole && words.contains(name.substr(begin, end - begin))) {
                made[end] = true;
            }
        }
    }
    return made[name.size()];
}

}  // namespace

bool has_word(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
            return true;
        }
    }
    return false;
}

std::string with_plain_newlines(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text.substr(at, 2) == "\r\n") ++at;
        plain += text[at];
    }
    return plain;
}

std::string spliced(std::string_view text) {
    std::string joined;
    joined.reserve(text.size());
    while (!text.empty()) {
        std::size_t skipped = 0;
        for (const std::string_view splice : {"\\\n", "?\?/\n"}) {
            if (text.starts_with(splice)) skipped = splice.size();
        }
        if (skipped == 0) joined += text.front();
        text.remove_prefix(skipped == 0 ? 1 : skipped);
    }
    return joined;
}

std::string_view name_of_day_or_file(std::string_view text) {
    for (const std::string_view name : kNames) {
        if (has_word(text, name)) return name;
    }
    return {};
}

std::string_view name_pasted(const std::vector<std::string>& texts) {
    bool pastes = false;
    std::vector<std::string> codes;
    for (const std::string& text : texts) {
        for (const std::string_view paste : kPastes)
            pastes = pastes || text.find(paste) != std::string::npos;
        codes.push_back(code_of(text));
    }
    Words words;
    for (const std::string& code : codes)
        add_words(code, words);
    if (!pastes) return {};
    for (const std::string_view name : kNames) {
        if (is_joined_of(name, words)) return name;
    }
    return {};
}

}  // namespace jitney::checks
