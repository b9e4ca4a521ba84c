#include "runtime/prewarm.hpp"

#include <chrono>
#include <exception>

#include "jitney/error.hpp"
#include "runtime/compiler.hpp"
#include "runtime/disk_cache.hpp"
#include "runtime/environment.hpp"

namespace jitney::runtime {
namespace {

// Before the compile, whose work would be lost.
void require_keeping(const KernelSource& source) {
    const cache::Options& options = disk_cache().options();
    if (options.private_root.empty()) {
        throw Error(ErrorCode::io,
                    source.specialization +
                        " is not in the cache, and there is no directory to keep it in: let "
                        "JITNEY_CACHE_DIR begin with one that can be written");
    }
    if (options.max_bytes == 0) {
        throw Error(ErrorCode::io, source.specialization +
                                       " is not in the cache, and JITNEY_CACHE_MAX_BYTES=0 keeps "
                                       "nothing in it: raise that, or unset it");
    }
}

void fill_cache(const KernelSource& source, PrewarmResult& result) {
    const cache::Key key = key_of(source);
    const std::string preferred = preferred_compiler();
    const cache::Outcome outcome = disk_cache().get_or_compute(key, preferred, [&source, &result] {
        require_keeping(source);
        CompiledKernel compiled = compile(source);
        result.log = std::move(compiled.log);
        return std::move(compiled.entry);
    });
    result.bytes = outcome.entry->payload.size();
    // What another thread compiled is cached if that thread could keep it.
    if (outcome.hit || (outcome.kept && outcome.origin != cache::Origin::computed)) {
        result.status = PrewarmStatus::cached;
    } else if (outcome.kept) {
        result.status = PrewarmStatus::compiled;
    } else {
        result.error = source.specialization + " was compiled, and could not be kept in " +
                       disk_cache().options().private_root + ": see the warning, or jitney doctor";
    }
}

}  // namespace

PrewarmResult prewarm(const KernelSource& source) noexcept {
    const auto start = std::chrono::steady_clock::now();
    PrewarmResult result;
    try {
        fill_cache(source, result);
    } catch (const CompileError& error) {
        result.error = error.what();
        result.log = error.log();
    } catch (const std::exception& error) {
        result.error = error.what();
    }
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    result.milliseconds = spent.count();
    return result;
}

}  // namespace jitney::runtime
