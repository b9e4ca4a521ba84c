#include "runtime/cold_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "runtime/disk_cache.hpp"
#include "runtime/driver.hpp"
#include "runtime/environment.hpp"
#include "runtime/image.hpp"
#include "runtime/log.hpp"
#include "runtime/parameter_bytes.hpp"

namespace jitney::runtime {
namespace {

class Stopwatch {
  public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double, std::milli> spent = now - last_;
        last_ = now;
        return spent.count();
    }

  private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// 13000 of "nvrtc13.0"; 0 where the text tells no version.
int cuda_version_of(const std::string& compiler) {
    const std::size_t digits = compiler.find_first_of("0123456789");
    if (digits == std::string::npos) return 0;
    int major = 0;
    int minor = 0;
    const char* last = compiler.data() + compiler.size();
    const auto [end, error] = std::from_chars(compiler.data() + digits, last, major);
    if (error != std::errc()) return 0;
    if (end < last) std::from_chars(end + 1, last, minor);
    return 1000 * major + 10 * minor;
}

std::string why_rejected(const cache::Entry& entry, const Rejection& rejection) {
    const int made_by = cuda_version_of(entry.compiler);
    const int driver_version = driver_status().version;
    if (made_by > driver_version) {
        return fmt::format(
            "the driver supports CUDA {} and refuses what {} made ({}): update the driver to one "
            "for CUDA {} or newer, or set JITNEY_LIBNVRTC to the NVRTC of CUDA {}",
            version_text(driver_version), entry.compiler, rejection.reason, version_text(made_by),
            version_text(driver_version));
    }
    return fmt::format("the driver (CUDA {}) refuses what {} made: {}",
                       version_text(driver_version), entry.compiler, rejection.reason);
}

class Loader {
  public:
    explicit Loader(const KernelSource& source)
        : source_(source), key_(key_of(source)), preferred_(preferred_compiler()) {}

    ColdLoad run() {
        from_disk();
        if (result_.handle == nullptr) {
            if (!jit_enabled()) throw_not_cached();
            compile_or_wait();
        }
        return result_;
    }

  private:
    void from_disk() {
        cache::Candidates candidates = disk_cache().find(key_, preferred_);
        while (std::optional<cache::Hit> hit = candidates.next()) {
            lookup_ms_ += watch_.lap();
            if (try_hit(*hit)) return;
        }
        lookup_ms_ += watch_.lap();
    }

    bool try_hit(const cache::Hit& hit) {
        if (!try_entry(*hit.entry)) {
            disk_cache().reject(hit);
            log::warn(fmt::format("{}: the cache entry {} is not used: {}", source_.specialization,
                                  hit.path, last_rejection_));
            return false;
        }
        say(fmt::format("from {}", hit.path), *hit.entry);
        return true;
    }

    bool try_entry(const cache::Entry& entry) {
        Rejection rejection;
        result_.handle = load_image(entry, &rejection);
        load_ms_ += watch_.lap();
        if (result_.handle != nullptr) {
            if (const auto bytes = parameter_bytes(entry.payload, entry.lowered_name)) {
                result_.parameter_bytes = static_cast<int>(*bytes);
            }
            return true;
        }
        ++result_.rejected;
        last_rejection_ = why_rejected(entry, rejection);
        return false;
    }

    // Whoever asks for the same key at the same time, in any process, waits for one compile.
    void compile_or_wait() {
        const cache::Outcome outcome = disk_cache().get_or_compute(key_, preferred_, [this] {
            lookup_ms_ += watch_.lap();
            CompiledKernel compiled = compile(source_);
            compile_ms_ = watch_.lap();
            say_log(compiled.log);
            result_.compiled = true;
            return std::move(compiled.entry);
        });
        lookup_ms_ += watch_.lap();
        if (outcome.hit) {
            if (try_hit(*outcome.hit)) return;
            compile_again();
            return;
        }
        if (!try_entry(*outcome.entry)) throw_rejected();
        say(outcome.origin == cache::Origin::computed ? "compiled" : "compiled by another thread",
            *outcome.entry);
    }

    void say_log(std::string_view log) const {
        while (!log.empty()) {
            const std::string_view line = log.substr(0, log.find('\n'));
            log.remove_prefix(std::min(line.size() + 1, log.size()));
            if (!line.empty())
                log::info(fmt::format("{}: NVRTC says: {}", source_.specialization, line));
        }
    }

    // Another process published an entry that the driver refuses; it is rejected by now.
    void compile_again() {
        CompiledKernel compiled = compile(source_);
        compile_ms_ = watch_.lap();
        result_.compiled = true;
        disk_cache().put(key_, compiled.entry);
        if (!try_entry(compiled.entry)) throw_rejected();
        say("compiled", compiled.entry);
    }

    [[noreturn]] void throw_rejected() const {
        throw Error(ErrorCode::driver,
                    fmt::format("{} can't be loaded: {}", source_.specialization, last_rejection_));
    }

    [[noreturn]] void throw_not_cached() const {
        const std::string refused = last_rejection_.empty()
                                        ? std::string()
                                        : fmt::format(" in a usable form ({})", last_rejection_);
        throw Error(ErrorCode::not_cached,
                    fmt::format("{} is not in the cache ({}){}, and JITNEY_JIT=off forbids "
                                "compiling it: {}",
                                source_.specialization, disk_cache_places(), refused,
                                source_.provided_by.empty()
                                    ? "run jitney prewarm --spec '" + source_.specialization + "'"
                                    : source_.provided_by));
    }

    void say(const std::string& how, const cache::Entry& entry) const {
        log::info(fmt::format(
            "{}: {} ({}, {} bytes) in {:.1f} ms: look-up {:.1f}, compile {:.1f}, load {:.1f}",
            source_.specialization, how, entry.compiler, entry.payload.size(),
            lookup_ms_ + compile_ms_ + load_ms_, lookup_ms_, compile_ms_, load_ms_));
    }

    Stopwatch watch_;
    double lookup_ms_ = 0;
    double compile_ms_ = 0;
    double load_ms_ = 0;
    const KernelSource& source_;
    const cache::Key key_;
    const std::string preferred_;
    ColdLoad result_;
    std::string last_rejection_;
};

}  // namespace

ColdLoad cold_load(const KernelSource& source) {
    return Loader(source).run();
}

}  // namespace jitney::runtime
