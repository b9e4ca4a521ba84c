#include "tests/emulator/test_support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace jitney::emulator {

std::string last_words(const std::function<void()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], 1);
        ::dup2(ends[1], 2);
        try {
            work();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s", error.what());
        }
        std::fflush(nullptr);
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string words;
    char part[4096];
    for (;;) {
        const ssize_t got = ::read(ends[0], part, sizeof part);
        if (got <= 0) break;
        words.append(part, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return words;
}

}  // namespace jitney::emulator
