#include "cli/errors.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "core/printable.hpp"

namespace jitney::cli {

namespace {

// What follows the first line break is printed below the line, as it is.
void print_line(const char* kind, std::string_view message) noexcept {
    try {
        const std::size_t end = std::min(message.find('\n'), message.size());
        std::string text =
            "jitney: " + std::string(kind) + ": " + printable(message.substr(0, end));
        text += printable_lines(message.substr(end));
        if (text.back() != '\n') text += '\n';
        std::fputs(text.c_str(), stderr);
    } catch (const std::bad_alloc&) {
        std::fputs("jitney: error: out of memory\n", stderr);
    }
}

}  // namespace

int exit_status_of(ErrorCode code) noexcept {
    return code == ErrorCode::invalid_argument ? kBadInput : kFailure;
}

void print_error(std::string_view message) noexcept {
    print_line("error", message);
}

void print_warning(std::string_view message) noexcept {
    print_line("warning", message);
}

int report(const std::exception& error) noexcept {
    if (const auto* compile = dynamic_cast<const CompileError*>(&error)) {
        const std::string_view sentence = compile->what();
        const bool has_log = sentence.find(compile->log()) != std::string_view::npos;
        print_error(has_log ? std::string(sentence)
                            : std::string(sentence) + "\n" + compile->log());
        return kFailure;
    }
    if (const auto* own = dynamic_cast<const Error*>(&error)) {
        print_error(own->what());
        return exit_status_of(own->code());
    }
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
        dynamic_cast<const std::length_error*>(&error) != nullptr) {  // of a container
        print_error("out of memory");
        return kFailure;
    }
    print_error(error.what());
    return kFailure;
}

void refuse(const std::string& message) {
    throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace jitney::cli
