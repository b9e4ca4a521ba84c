#include "runtime/forks.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>

#include "jitney/error.hpp"

namespace jitney::runtime {
namespace {

std::atomic<int> compiles{0};
std::atomic<bool> orphaned{false};

void enter_child() {
    if (compiles.exchange(0) > 0) orphaned = true;
}

}  // namespace

Compiling::Compiling(const std::string& specialization) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, enter_child);
    static_cast<void>(registered);
    if (orphaned) refuse_after_fork(specialization);
    ++compiles;
}

Compiling::~Compiling() {
    --compiles;
}

bool forked_amid_compile() noexcept {
    return orphaned;
}

void refuse_after_fork(const std::string& specialization) {
    throw Error(
        ErrorCode::no_compiler,
        fmt::format("{} can't be compiled here: this process was forked while another thread "
                    "of its parent compiled, and NVRTC is unusable in such a child; fork "
                    "before the first call, let the child start a program of its own "
                    "(exec), or fill the cache ahead with jitney prewarm",
                    specialization));
}

}  // namespace jitney::runtime
