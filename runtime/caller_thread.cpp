#include "runtime/caller_thread.hpp"

#include <utility>

#include "runtime/device.hpp"
#include "runtime/driver.hpp"

namespace jitney::runtime {
namespace {

// Null where the driver is not open.
const Driver* open_driver() noexcept {
    return detail::usable_driver.load(std::memory_order_acquire);
}

}  // namespace

BorrowedThread::BorrowedThread() noexcept : lent_before_(std::exchange(detail::lent, false)) {}

BorrowedThread::~BorrowedThread() {
    if (detail::lent) [[unlikely]]
        leave_lent_context();
    detail::lent = lent_before_;
    errno = errno_;
}

KeptThread::KeptThread() noexcept : locale_(uselocale(nullptr)) {
    std::fegetenv(&floating_);
    const Driver* cuda = open_driver();
    knows_context_ = cuda != nullptr && cuda->cuCtxGetCurrent(&context_) == CUDA_SUCCESS;
}

KeptThread::~KeptThread() {
    CUcontext now = nullptr;
    if (knows_context_ && open_driver()->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now != context_) {
        open_driver()->cuCtxSetCurrent(context_);
    }
    if (uselocale(nullptr) != locale_) uselocale(locale_);
    std::fesetenv(&floating_);
    errno = errno_;
}

void KeptThread::make_plain() const noexcept {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    if (plain != nullptr) uselocale(plain);
    std::fesetenv(FE_DFL_ENV);
}

}  // namespace jitney::runtime
