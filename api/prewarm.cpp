#include "jitney/prewarm.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "api/own_kernel.hpp"
#include "jitney/kernel.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/logits_access.hpp"
#include "operations/refuse.hpp"
#include "policy/device_facts.hpp"
#include "runtime/caller_thread.hpp"
#include "runtime/prewarm.hpp"

namespace jitney {
namespace {

PrewarmStatus status_of(runtime::PrewarmStatus status) {
    switch (status) {
        case runtime::PrewarmStatus::compiled:
            return PrewarmStatus::compiled;
        case runtime::PrewarmStatus::cached:
            return PrewarmStatus::cached;
        case runtime::PrewarmStatus::failed:
            break;
    }
    return PrewarmStatus::failed;
}

// One thing to be compiled: a specialization, or a caller's kernel for an arch.
struct Wanted {
    policy::Spec spec;
    const detail::OwnKernel* own = nullptr;
    Arch arch;

    runtime::KernelSource source() const {
        return own != nullptr ? source_of(*own, arch) : source_of(spec);
    }
};

PrewarmEntry prewarm_one(const Wanted& wanted) {
    PrewarmEntry entry;
    const runtime::KernelSource source = wanted.source();
    runtime::PrewarmResult result = runtime::prewarm(source);
    entry.spec = source.specialization;
    entry.status = status_of(result.status);
    entry.milliseconds = result.milliseconds;
    entry.bytes = result.bytes;
    entry.error = std::move(result.error);
    return entry;
}

// No GPU of the arch has the shared memory that some texts ask for, which parse all the same.
void require_launchable(const policy::Spec& spec, const std::string& text) {
    if (!is_known(spec.arch())) return;
    const int most = policy::typical_facts(spec.arch()).shared_bytes_per_block;
    const int asked = policy::shared_bytes(spec);
    if (asked <= most) return;
    checks::refuse(
        "{} needs {} bytes of shared memory a block, and a GPU of {} has {}: jitney explain gives "
        "what a problem gets there",
        text, asked, spec.arch().text(), most);
}

// The work of one call, taken by several threads an entry at a time.
class Prewarm {
  public:
    Prewarm(std::vector<Wanted> wanted, const PrewarmOptions& options)
        : wanted_(std::move(wanted)), options_(options), entries_(wanted_.size()) {}

    std::vector<PrewarmEntry> run() {
        const runtime::BorrowedThread thread;
        std::vector<std::jthread> others;
        const std::size_t threads = thread_count();
        others.reserve(threads);
        for (std::size_t i = 1; i < threads; ++i) {
            try {
                others.emplace_back([this] { work(); });
            } catch (const std::system_error&) {
                break;  // no more threads to be had: those that run do all the work
            }
        }
        work();
        others.clear();  // joins
        if (failure_) std::rethrow_exception(failure_);
        return std::move(entries_);
    }

  private:
    std::size_t thread_count() const {
        const auto cores = static_cast<std::size_t>(std::thread::hardware_concurrency());
        const std::size_t most = options_.jobs > 0 ? static_cast<std::size_t>(options_.jobs)
                                                   : std::max<std::size_t>(cores, 1);
        return std::min(most, wanted_.size());
    }

    // An exception can only be the caller's, of `progress`: the others then stop early.
    void work() noexcept {
        try {
            for (std::size_t at = next_++; at < wanted_.size(); at = next_++) {
                entries_[at] = prewarm_one(wanted_[at]);
                const std::lock_guard lock(mutex_);
                ++done_;
                if (options_.progress) options_.progress(entries_[at], done_, wanted_.size());
            }
        } catch (...) {
            next_ = wanted_.size();
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    const std::vector<Wanted> wanted_;
    const PrewarmOptions& options_;
    std::vector<PrewarmEntry> entries_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::exception_ptr failure_;
};

}  // namespace

void check_spec(std::string_view text) {
    policy::parse_spec_of_gpu(text);
}

std::vector<PrewarmEntry> prewarm(std::span<const std::string> specs,
                                  const PrewarmOptions& options) {
    return prewarm(specs, {}, options);
}

std::vector<PrewarmEntry> prewarm(std::span<const std::string> specs,
                                  std::span<const KernelTarget> kernels,
                                  const PrewarmOptions& options) {
    if (options.jobs < 0) {
        checks::refuse("jobs is {}; it is 0 (as many as there are cores) or more", options.jobs);
    }
    std::vector<Wanted> wanted;
    wanted.reserve(specs.size() + kernels.size());
    for (const std::string& text : specs) {
        const policy::Spec spec = policy::parse_spec_of_gpu(text);
        logits_source(policy::logits_digest(spec), text);  // known, or an error
        require_launchable(spec, text);
        wanted.push_back({spec, nullptr, {}});
    }
    for (const KernelTarget& target : kernels) {
        const detail::OwnKernel& own = KernelAccess::own(target.kernel);
        wanted.push_back({{}, &own, arch_named(own, target.arch)});
    }
    return Prewarm(std::move(wanted), options).run();
}

}  // namespace jitney
