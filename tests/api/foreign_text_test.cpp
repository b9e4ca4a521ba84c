// Text of the caller's that a sentence quotes makes no line of its own, and moves no cursor.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/logits.hpp"
#include "jitney/prewarm.hpp"
#include "jitney/rotary.hpp"

namespace jitney::tests {

TEST_CASE("control bytes of a caller's text are written out in errors") {
    const std::string evil = "a\n\x1b[2Jb";
    const std::vector<std::function<void()>> calls = {
        [&] { const Scope scope{std::string_view(evil)}; },
        [&] { explain(RotaryArgs{}, "sm_" + evil); },
        [&] { const LogitsFunction function("score", {"float " + evil}); },
        [&] { const LogitsFunction function("score", {evil + " x"}); },
        [&] { prewarm(std::vector<std::string>{evil + "<x=1>@sm_80"}); },
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
        INFO("call ", i);
        try {
            calls[i]();
            FAIL_CHECK("it was accepted");
        } catch (const Error& error) {
            const std::string text = error.what();
            CAPTURE(text);
            for (const char c : text)
                CHECK(static_cast<unsigned char>(c) >= 0x20);
        }
    }
}

}  // namespace jitney::tests
