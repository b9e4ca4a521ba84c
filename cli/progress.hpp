// A progress bar on stderr, where that is a terminal; nothing elsewhere.
#pragma once

#include <cstddef>
#include <string_view>

namespace jitney::cli {

class ProgressBar {
  public:
    ProgressBar();
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void show(std::size_t done, std::size_t total, std::string_view text);

  private:
    bool terminal_;
    bool shown_ = false;
};

}  // namespace jitney::cli
