#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/printable.hpp"

namespace jitney::cli {

namespace {

std::size_t columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (shown_) std::fputs(kEraseLine, stderr);
}

void ProgressBar::show(std::size_t done, std::size_t total, std::string_view text) {
    if (!terminal_ || total == 0) return;
    constexpr std::size_t kCells = 24;
    const std::size_t filled = kCells * done / total;
    std::string line = fmt::format("[{}{}] {}/{} {}", std::string(filled, '#'),
                                   std::string(kCells - filled, '.'), done, total, printable(text));
    line.resize(std::min(line.size(), columns() - 1));
    std::fputs((kEraseLine + line).c_str(), stderr);
    shown_ = true;
}

}  // namespace jitney::cli
