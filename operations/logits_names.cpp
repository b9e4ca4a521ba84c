#include "operations/logits_names.hpp"

#include <string>

#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

// The text alone does not say what the preprocessor and the compiler make of these: it hangs on the
// day, on files, or on where the text stands.
constexpr std::string_view kNames[] = {"__DATE__",           "__TIME__",
                                       "__TIMESTAMP__",      "__FILE__",
                                       "__BASE_FILE__",      "__FILE_NAME__",
                                       "__LINE__",           "__INCLUDE_LEVEL__",
                                       "__COUNTER__",        "__has_include",
                                       "__has_include_next", "__has_embed",
                                       "__builtin_FILE",     "__builtin_FILE_NAME",
                                       "__builtin_LINE",     "__builtin_COLUMN",
                                       "source_location",    "__builtin_source_location"};

// The text as the preprocessor joins its lines, trigraphs of another --std counted in.
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

void check_logits_names(std::string_view text, std::string_view code) {
    const std::string joined = spliced(text);
    for (const std::string_view name : kNames) {
        if (!has_word(joined, name)) continue;
        refuse(
            "the text of a logits function has {}, which makes different functions of equal texts: "
            "leave it out, in comments too, and write what it stands for",
            name);
    }
    const std::string joined_code = spliced(code);
    for (const std::string_view paste : {"##", "%:%:"}) {
        if (joined_code.find(paste) == std::string::npos) continue;
        refuse(
            "the text of a logits function has {}, which makes names that the text does not show: "
            "write the names out",
            paste);
    }
}

}  // namespace jitney::checks
