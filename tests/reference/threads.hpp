// Sets JITNEY_NUM_THREADS for a scope.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace jitney::tests {

class ThreadsVariable {
  public:
    explicit ThreadsVariable(const std::string& value) {
        if (const char* before = std::getenv("JITNEY_NUM_THREADS")) before_ = before;
        setenv("JITNEY_NUM_THREADS", value.c_str(), 1);
    }
    ~ThreadsVariable() {
        if (before_) {
            setenv("JITNEY_NUM_THREADS", before_->c_str(), 1);
        } else {
            unsetenv("JITNEY_NUM_THREADS");
        }
    }
    ThreadsVariable(const ThreadsVariable&) = delete;
    ThreadsVariable& operator=(const ThreadsVariable&) = delete;

  private:
    std::optional<std::string> before_;
};

}  // namespace jitney::tests
