#include "operations/logits_names.hpp"

#include <string>

#include "operations/device_text.hpp"
#include "operations/refuse.hpp"

namespace jitney::checks {
namespace {

// The preprocessor and the compiler make of these what hangs on where the text stands, which is in
// the midst of a kernel's.
constexpr std::string_view kNames[] = {
    "__FILE__",       "__BASE_FILE__",     "__FILE_NAME__",   "__LINE__",
    "__COUNTER__",    "__INCLUDE_LEVEL__", "__builtin_FILE",  "__builtin_FILE_NAME",
    "__builtin_LINE", "__builtin_COLUMN",  "source_location", "__builtin_source_location"};

std::string_view name_in(std::string_view text) {
    if (const std::string_view name = name_of_day_or_file(text); !name.empty()) return name;
    for (const std::string_view name : kNames) {
        if (has_word(text, name)) return name;
    }
    return {};
}

}  // namespace

void check_logits_names(std::string_view text, std::string_view code) {
    if (const std::string joined = spliced(text); !name_in(joined).empty()) {
        refuse(
            "the text of a logits function has {}, which makes different functions of equal texts: "
            "leave it out, in comments too, and write what it stands for",
            name_in(joined));
    }
    const std::string joined_code = spliced(code);
    for (const std::string_view paste : kPastes) {
        if (joined_code.find(paste) == std::string::npos) continue;
        refuse(
            "the text of a logits function has {}, which makes names that the text does not show: "
            "write the names out",
            paste);
    }
}

}  // namespace jitney::checks
