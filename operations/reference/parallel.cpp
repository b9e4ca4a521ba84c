#include "operations/reference/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace jitney::reference {

namespace {

// Empty where it is not set.
std::string_view variable() {
    const char* const value = ::secure_getenv("JITNEY_NUM_THREADS");
    return value == nullptr ? std::string_view() : std::string_view(value);
}

// 0 where the text is no number of threads.
int threads_of(std::string_view text) {
    int threads = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), threads);
    const bool whole = code == std::errc() && end == text.data() + text.size();
    return whole ? std::max(threads, 0) : 0;
}

}  // namespace

int thread_count() {
    if (const int wanted = threads_of(variable()); wanted > 0) return wanted;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string thread_count_problem() {
    const std::string_view text = variable();
    if (text.empty() || threads_of(text) > 0) return {};
    return "JITNEY_NUM_THREADS is \"" + std::string(text) +
           "\", which is no whole number of at least 1, and all cores are used: correct or unset "
           "it";
}

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task) {
    if (count <= 0) return;
    const std::int64_t threads = std::min<std::int64_t>(count, thread_count());

    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto work = [&] {
        for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
            try {
                task(i);
            } catch (...) {
                const std::lock_guard lock(failure_mutex);
                if (!failure) failure = std::current_exception();
                next.store(count);
            }
        }
    };

    std::vector<std::thread> helpers;
    helpers.reserve(static_cast<std::size_t>(threads - 1));
    for (std::int64_t i = 1; i < threads; ++i) {
        try {
            helpers.emplace_back(work);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: those that run do all the work
        }
    }
    work();
    for (std::thread& helper : helpers)
        helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace jitney::reference
