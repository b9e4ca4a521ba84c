#include "runtime/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "core/printable.hpp"

namespace jitney::runtime::log {
namespace {

struct Log {
    spdlog::logger logger;
    Level level = Level::warn;

    Log() : logger("jitney", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
        logger.set_pattern("[%n] [%l] %v");
        logger.set_level(spdlog::level::trace);
        const char* value = std::getenv("JITNEY_LOG");
        const std::string_view text = value == nullptr ? "" : value;
        if (text == "debug") {
            level = Level::debug;
        } else if (text == "info") {
            level = Level::info;
        } else if (text == "off") {
            level = Level::off;
        } else if (!text.empty() && text != "warn") {
            logger.warn("JITNEY_LOG is \"{}\", not one of debug, info, warn, off: taken as warn",
                        text);
        }
    }
};

// Never destroyed: messages may come while the program ends.
Log& instance() {
    static Log* const log = new Log;
    return *log;
}

spdlog::level::level_enum level_of(Level level) {
    switch (level) {
        case Level::debug:
            return spdlog::level::debug;
        case Level::info:
            return spdlog::level::info;
        case Level::warn:
            return spdlog::level::warn;
        case Level::off:
            break;
    }
    return spdlog::level::off;
}

}  // namespace

bool enabled(Level level) noexcept {
    try {
        return level != Level::off && level >= instance().level;
    } catch (...) {
        return false;
    }
}

void write(Level level, std::string_view message) noexcept {
    if (!enabled(level)) return;
    try {
        // What is quoted in it may come from anywhere, and must not make a line of its own.
        instance().logger.log(level_of(level), spdlog::string_view_t(printable(message)));
    } catch (...) {  // without memory there is no message
    }
}

}  // namespace jitney::runtime::log
