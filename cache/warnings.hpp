// Warnings that are said once: the same fault at a thousand kernels is one line.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "cache/options.hpp"
#include "core/printable.hpp"

namespace jitney::cache {

class Warnings {
  public:
    explicit Warnings(Warn warn) : warn_(std::move(warn)) {}

    void once(std::string_view text) {
        if (!warn_) return;
        const std::string message = printable(text);
        {
            const std::lock_guard guard(mutex_);
            // A bound, should messages ever differ without end.
            if (said_.size() >= 1000 || !said_.insert(message).second) return;
        }
        try {
            warn_(message);
        } catch (...) {  // a fault of the log must not become a fault of the cache
        }
    }

  private:
    Warn warn_;
    std::mutex mutex_;
    std::set<std::string> said_;
};

}  // namespace jitney::cache
