#include "cli/errors.hpp"

#include <cstdio>
#include <new>
#include <stdexcept>

#include "core/printable.hpp"

namespace jitney::cli {

namespace {

void print_line(const char* kind, std::string_view sentence, std::string_view details) noexcept {
    try {
        std::string text = "jitney: " + std::string(kind) + ": " + printable(sentence) + "\n";
        text += printable_lines(details);
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

void print_error(std::string_view sentence, std::string_view details) noexcept {
    print_line("error", sentence, details);
}

void print_warning(std::string_view sentence) noexcept {
    print_line("warning", sentence, {});
}

int report(const std::exception& error) noexcept {
    if (const auto* compile = dynamic_cast<const CompileError*>(&error)) {
        const std::string_view sentence = compile->what();
        const bool has_log = sentence.find(compile->log()) != std::string_view::npos;
        print_error(sentence, has_log ? std::string_view() : compile->log());
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
