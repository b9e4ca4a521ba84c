// The calls of the C ABI that are of no operation.
#include <fmt/format.h>

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "api/c_abi_arguments.hpp"
#include "api/c_abi_error.hpp"
#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/error.hpp"
#include "jitney/prewarm.hpp"
#include "operations/logits_access.hpp"
#include "operations/refuse.hpp"

namespace jitney::c_abi {
namespace {

// The scopes that this thread has pushed; those that are left end with it, the latest first.
struct Scopes {
    std::deque<Scope> pushed;
    Scopes() = default;
    Scopes(const Scopes&) = delete;
    Scopes& operator=(const Scopes&) = delete;
    ~Scopes() {
        while (!pushed.empty())
            pushed.pop_back();
    }
};

thread_local Scopes scopes;

// Far more than there are.
constexpr std::size_t kMostSpecs = std::size_t{1} << 24;

// Values that are none of the enumerators are refused by what they are given to.
static_assert(JITNEY_SCALAR == static_cast<int>(ops::Variant::scalar) &&
              JITNEY_MMA == static_cast<int>(ops::Variant::mma) &&
              JITNEY_WGMMA == static_cast<int>(ops::Variant::wgmma));
static_assert(JITNEY_JIT == static_cast<int>(Backend::jit) &&
              JITNEY_REFERENCE == static_cast<int>(Backend::reference));

jitney_prewarm_status status_of(PrewarmStatus status) {
    switch (status) {
        case PrewarmStatus::compiled:
            return JITNEY_PREWARM_COMPILED;
        case PrewarmStatus::cached:
            return JITNEY_PREWARM_CACHED;
        case PrewarmStatus::failed:
            break;
    }
    return JITNEY_PREWARM_FAILED;
}

std::vector<std::string> texts(const char* const* given, std::size_t count, std::size_t most,
                               const char* name) {
    if (count > most) {
        checks::refuse("count is {}; it is how many texts {} points to, at most {}", count, name,
                       most);
    }
    if (given == nullptr && count > 0) {
        checks::refuse("{} is null and count {}: point it to that many texts", name, count);
    }
    const std::string each = fmt::format("a text of {}", name);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(text(given[i], each.c_str()));
    return all;
}

void throw_first_failure(const std::vector<PrewarmEntry>& entries) {
    std::size_t failed = 0;
    const PrewarmEntry* first = nullptr;
    for (const PrewarmEntry& entry : entries) {
        if (entry.status != PrewarmStatus::failed) continue;
        if (first == nullptr) first = &entry;
        ++failed;
    }
    if (first == nullptr) return;
    throw Error(ErrorCode::compile_failed,
                failed == 1 ? first->error
                            : fmt::format("{} (and {} more of {} failed)", first->error, failed - 1,
                                          entries.size()));
}

void prewarm_texts(std::span<const std::string> specs, int jobs, jitney_prewarm_callback callback,
                   void* user) {
    PrewarmOptions options;
    options.jobs = jobs;
    if (callback != nullptr) {
        options.progress = [callback, user](const PrewarmEntry& entry, std::size_t done,
                                            std::size_t total) {
            const jitney_prewarm_entry shown = {entry.spec.c_str(),      entry.error.c_str(),
                                                entry.milliseconds,      entry.bytes,
                                                status_of(entry.status), 0};
            callback(&shown, done, total, user);
        };
    }
    throw_first_failure(prewarm(specs, options));
}

}  // namespace
}  // namespace jitney::c_abi

extern "C" {

using namespace jitney;
using namespace jitney::c_abi;

const char* jitney_version(void) {
    return JITNEY_VERSION;
}

const char* jitney_last_run(void) {
    thread_local std::string shown;
    try {
        shown = last_run();
        return shown.c_str();
    } catch (...) {  // no memory
        return "";
    }
}

jitney_status jitney_logits_function_of(const char* given, const char* const* parameters,
                                        size_t count, const jitney_logits_function** function) {
    return guarded([&] {
        if (function == nullptr) {
            checks::refuse("function is null: point it to where the function shall go");
        }
        *function = nullptr;
        const std::vector<std::string> declared =
            texts(parameters, count, kLogitsValues, "parameters");
        const std::vector<std::string_view> views(declared.begin(), declared.end());
        const LogitsFunction made(text(given, "text"), views);
        *function = reinterpret_cast<const jitney_logits_function*>(LogitsAccess::record(made));
    });
}

jitney_status jitney_push_backend(int backend) {
    return guarded([&] { scopes.pushed.emplace_back(static_cast<Backend>(backend)); });
}

jitney_status jitney_push_kernel(const char* kernel) {
    return guarded([&] { scopes.pushed.emplace_back(text(kernel, "kernel")); });
}

jitney_status jitney_pop(void) {
    return guarded([] {
        if (scopes.pushed.empty()) {
            checks::refuse("there is nothing to pop: this thread has pushed no backend or kernel");
        }
        scopes.pushed.pop_back();
    });
}

jitney_status jitney_prewarm(const char* const* specs, size_t count, int jobs,
                             jitney_prewarm_callback callback, void* user) {
    return guarded(
        [&] { prewarm_texts(texts(specs, count, kMostSpecs, "specs"), jobs, callback, user); });
}

}  // extern "C"
