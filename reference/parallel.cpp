#include "reference/parallel.hpp"

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

#include "jitney/error.hpp"

namespace jitney::reference {

int thread_count() {
    const char* variable = std::getenv("JITNEY_NUM_THREADS");
    if (variable == nullptr || *variable == '\0') {
        return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    }
    const std::string_view text = variable;
    int threads = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), threads);
    if (code != std::errc() || end != text.data() + text.size() || threads < 1) {
        throw Error(ErrorCode::invalid_argument,
                    "JITNEY_NUM_THREADS is '" + std::string(text) +
                        "'; set it to a whole number of at least 1, or unset it");
    }
    return threads;
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
