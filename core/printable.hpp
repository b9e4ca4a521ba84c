// Text from elsewhere (a file, a variable, an argument, another process), made fit to be shown: on
// one line, without anything that a terminal or a reader would take for more than text.
#pragma once

#include <string>
#include <string_view>

namespace jitney {

// The text with every control character, line break, mark that reorders text, and byte that is no
// UTF-8 written out: \n, \x1b, \u{202e}. Any other text comes back as it is.
std::string printable(std::string_view text);

// The same of each line of a text of several: its line feeds and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace jitney
