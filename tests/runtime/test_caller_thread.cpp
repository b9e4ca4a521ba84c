// What belongs to the calling thread is as it was, whatever the compiler and the driver do to it.
#include "runtime/caller_thread.hpp"

#include <cuda.h>
#include <doctest/doctest.h>

#include <cerrno>
#include <cfenv>
#include <clocale>
#include <cstdio>

#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/nvrtc.hpp"
#include "runtime/prewarm.hpp"
#include "runtime/runtime.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using namespace jitney::runtime;

namespace {

// A thread with a locale, a rounding mode and an errno of its own, which it checks in the end.
class OwnThread {
  public:
    OwnThread() : locale_(newlocale(LC_ALL_MASK, "C.UTF-8", nullptr)) {
        uselocale(locale_);
        std::fesetround(FE_UPWARD);
        errno = 77;
    }
    ~OwnThread() {
        const int error = errno;
        CHECK(error == 77);
        CHECK(uselocale(nullptr) == locale_);
        CHECK(std::fegetround() == FE_UPWARD);
        uselocale(LC_GLOBAL_LOCALE);
        std::fesetround(FE_TONEAREST);
    }

  private:
    locale_t locale_;
};

CUcontext current() {
    CUcontext context = nullptr;
    CHECK(driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    return context;
}

const Kernel& load(int factor) {
    return runtime::runtime().kernel(tests::tiny_key(90, factor), 0, tests::tiny_describe(),
                                     nullptr);
}

tests::Variables meddlers(const std::string& cache, const tests::Variables& more = {}) {
    tests::Variables all = tests::fakes(
        cache,
        {{"FAKE_NVRTC_MEDDLES", "1"}, {"FAKE_CUDA_MEDDLES", "1"}, {"FAKE_CUDA_DEVICES", "90,90"}});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

}  // namespace

TEST_CASE("scenario: a thread of the caller's" * doctest::skip()) {
    {
        const OwnThread own;
        driver_status();  // opens the driver, which starts
    }
    current_device(0);
    const CUcontext context = current();
    for (const int factor : {3, 4}) {
        const OwnThread own;
        load(factor);
        CHECK(current() == context);
    }
    {
        const OwnThread own;
        compile(tests::tiny_source("sm_80"));
        CHECK(current() == context);
    }
    {
        const OwnThread own;
        CHECK_THROWS_AS(compile(tests::tiny_source("gfx942")), Error);
        CHECK(current() == context);
    }
}

TEST_CASE("a call that compiles and loads leaves its thread as it was") {
    const tests::TemporaryDirectory root;
    const tests::Ended ended =
        tests::run("scenario: a thread of the caller's", meddlers(root / "cache"));
    REQUIRE_PASSED(ended);
    // A compile has the plain locale and rounding, whatever the caller has.
    CHECK(ended.count("found by the compiler: 1 byte a character, rounding 0\n") == 3);
    CHECK(ended.count("found by the compiler") == 3);
    CHECK(ended.count("the driver meddles") > 2);
}

TEST_CASE("scenario: calls that fail" * doctest::skip()) {
    current_device(0);
    const CUcontext context = current();
    for (int i = 0; i < 2; ++i) {
        const OwnThread own;
        CHECK_THROWS_AS(load(3), Error);
        CHECK(current() == context);
    }
    const OwnThread own;
    CHECK_THROWS_AS(compile(tests::tiny_source()), Error);
    CHECK(current() == context);
}

TEST_CASE("a call that fails to compile, or to load, leaves its thread as it was") {
    const tests::TemporaryDirectory root;
    tests::write_file(root / "failing", "");
    REQUIRE_PASSED(
        tests::run("scenario: calls that fail",
                   meddlers(root / "cache", {{"FAKE_NVRTC_FAIL_WHILE", root / "failing"}})));
    tests::Variables without = meddlers(root / "cache");
    without[1].second = root / "no-nvrtc";
    REQUIRE_PASSED(tests::run("scenario: calls that fail", without));
}

TEST_CASE("scenario: a lent context" * doctest::skip()) {
    fake::Cuda& fake = tests::fake_cuda();
    for (int i = 0; i < 3; ++i) {
        errno = 77;
        {
            const BorrowedThread thread;
            {
                const BorrowedThread within;  // as of a call that a call makes
                CHECK(current_device(1).ordinal == 1);
                CHECK(current() != nullptr);
                errno = 1;
            }
            CHECK(current() == nullptr);
            CHECK(current_device(0).ordinal == 0);
            errno = 2;
        }
        CHECK(errno == 77);
        CHECK(current() == nullptr);
    }
    CHECK(fake.retains == 2);
    // What is made current outside of a call stays, also beyond calls.
    CHECK(current_device(0).ordinal == 0);
    const CUcontext mine = current();
    {
        const BorrowedThread thread;
        CHECK(current_device(1).ordinal == 0);
    }
    CHECK(current() == mine);
}

TEST_CASE("a context is lent to a call, and not left to its thread") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: a lent context",
                              tests::fakes(cache.path(), {{"FAKE_CUDA_DEVICES", "90,90"}})));
}
