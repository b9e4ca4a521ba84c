#include "core/printable.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "jitney/error.hpp"

namespace jitney {

TEST_CASE("text without control characters is shown as it is") {
    for (const char* text : {"", "rotary_emb<format=bf16>@sm_90a", "C:\\dir", "größer ≤ 日本 🚌"}) {
        CHECK(printable(text) == text);
        CHECK(printable_lines(text) == text);
    }
}

TEST_CASE("what a terminal would obey is written out") {
    const std::pair<std::string, const char*> cases[] = {
        {"a\nb", "a\\nb"},
        {"a\r\tb", "a\\r\\tb"},
        {"\x1b[2Jgone", "\\x1b[2Jgone"},
        {std::string("a\0b", 3), "a\\x00b"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b"
         "2J",
         "\\u{9b}2J"},
        {"\xe2\x80\xae", "\\u{202e}"},
        {"\xe2\x80\xa8", "\\u{2028}"},
        {"\xe2\x81\xa6x", "\\u{2066}x"},
    };
    for (const auto& [text, shown] : cases)
        CHECK(printable(text) == shown);
}

TEST_CASE("bytes that are no UTF-8 are written out one by one") {
    CHECK(printable("\xff"
                    "a") == "\\xffa");
    CHECK(printable("\x9b") == "\\x9b");           // a control of eight bits
    CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");  // the same, in more bytes than it takes
    CHECK(printable("\xe0\x80\x8a") == "\\xe0\\x80\\x8a");
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
    CHECK(printable("\xe2\x80") == "\\xe2\\x80");  // cut short
    CHECK(printable("\xf0\x9f\x9a\x8c") == "\xf0\x9f\x9a\x8c");
}

TEST_CASE("lines stay lines where there may be several") {
    CHECK(printable_lines("one\n\ttwo\x1b\r\n") == "one\n\ttwo\\x1b\\r\n");
}

TEST_CASE("an error's sentence is one printable line, whatever it quotes") {
    CHECK(std::string(Error(ErrorCode::io, "can't read a\nb\x1b[31m").what()) ==
          "can't read a\\nb\\x1b[31m");
    const CompileError error("x\ny", "spec", "line 1\nline 2");
    CHECK(std::string(error.what()) == "x\\ny");
    CHECK(error.log() == "line 1\nline 2");
}

}  // namespace jitney
