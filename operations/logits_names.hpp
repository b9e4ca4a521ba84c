// Names that a logits function may not have: a kernel's key holds its text, and equal texts have to
// be equal machine code, in every process and on every day.
#pragma once

#include <string_view>

namespace jitney::checks {

// Throws Error where the text has one of them, also across lines that are joined, or could make one
// by pasting tokens. `code` is the text without comments and without what stands in quotes.
void check_logits_names(std::string_view text, std::string_view code);

}  // namespace jitney::checks
