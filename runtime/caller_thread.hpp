// What belongs to the calling thread, and is the same after a call of the library as before it,
// whether the call succeeds or fails.
#pragma once

#include <cerrno>
#include <cfenv>
#include <clocale>

struct CUctx_st;

namespace jitney::runtime {

// For as long as a call lasts: a context that current_device() makes current in a thread that had
// none is lent to the call, and errno is the caller's again. Costs a call two looks at the thread's
// own memory.
class BorrowedThread {
  public:
    BorrowedThread() noexcept;
    ~BorrowedThread();
    BorrowedThread(const BorrowedThread&) = delete;
    BorrowedThread& operator=(const BorrowedThread&) = delete;

  private:
    int errno_ = errno;
    bool lent_before_;
};

// Around code that is not ours, on the cold path: opening a library, whose constructors run, NVRTC
// (before 12.6.2 it leaves another locale behind), and what the driver does when it starts or loads
// a kernel. Locale, floating-point environment, current context and errno come back. The context is
// not looked at before the driver is open.
class KeptThread {
  public:
    KeptThread() noexcept;
    ~KeptThread();
    KeptThread(const KeptThread&) = delete;
    KeptThread& operator=(const KeptThread&) = delete;

    // Gives the thread the locale "C" and the default floating-point environment, so that a
    // compiler makes the same of a text whatever the caller has.
    void make_plain() const noexcept;

  private:
    int errno_ = errno;
    locale_t locale_;
    std::fenv_t floating_{};
    bool knows_context_ = false;
    CUctx_st* context_ = nullptr;
};

}  // namespace jitney::runtime
