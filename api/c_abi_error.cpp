#include "api/c_abi_error.hpp"

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "jitney/error.hpp"

namespace jitney::c_abi {
namespace {

static_assert(JITNEY_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(JITNEY_UNSUPPORTED == static_cast<int>(ErrorCode::unsupported));
static_assert(JITNEY_NO_DEVICE == static_cast<int>(ErrorCode::no_device));
static_assert(JITNEY_NO_COMPILER == static_cast<int>(ErrorCode::no_compiler));
static_assert(JITNEY_COMPILE_FAILED == static_cast<int>(ErrorCode::compile_failed));
static_assert(JITNEY_NOT_CACHED == static_cast<int>(ErrorCode::not_cached));
static_assert(JITNEY_DRIVER == static_cast<int>(ErrorCode::driver));
static_assert(JITNEY_CAPTURE == static_cast<int>(ErrorCode::capture));
static_assert(JITNEY_OUT_OF_MEMORY == static_cast<int>(ErrorCode::out_of_memory));
static_assert(JITNEY_IO == static_cast<int>(ErrorCode::io));
static_assert(JITNEY_INTERNAL == static_cast<int>(ErrorCode::internal));

constexpr const char* kNoMemory = "host memory ran out: free some, and call again";

// The pointers are what is shown. They point into the strings, or to a constant.
struct LastError {
    const char* sentence = "";
    const char* log = "";
    std::string sentence_text;
    std::string log_text;
};

thread_local LastError last;

void keep_sentence(std::string_view sentence) noexcept {
    try {
        last.sentence_text = sentence;
        last.sentence = last.sentence_text.c_str();
    } catch (...) {
        last.sentence = kNoMemory;
    }
}

void keep_log(std::string_view log) noexcept {
    try {
        last.log_text = log;
        last.log = last.log_text.c_str();
    } catch (...) {
        last.log = "";
    }
}

}  // namespace

void forget_error() noexcept {
    last.sentence = "";
    last.log = "";
}

jitney_status keep_error() noexcept {
    try {
        throw;
    } catch (const CompileError& error) {
        keep_sentence(error.what());
        keep_log(error.log());
        return JITNEY_COMPILE_FAILED;
    } catch (const Error& error) {
        keep_sentence(error.what());
        return static_cast<jitney_status>(error.code());
    } catch (const std::bad_alloc&) {
        last.sentence = kNoMemory;
        return JITNEY_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        keep_sentence(error.what());
        return JITNEY_INTERNAL;
    } catch (...) {
        last.sentence = "something that is no std::exception was thrown: please report it";
        return JITNEY_INTERNAL;
    }
}

}  // namespace jitney::c_abi

extern "C" {

const char* jitney_last_error(void) {
    return jitney::c_abi::last.sentence;
}

const char* jitney_last_compile_log(void) {
    return jitney::c_abi::last.log;
}

}  // extern "C"
