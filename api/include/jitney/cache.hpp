// The cache of compiled kernels on disk: what stands in it, and its upkeep. `jitney cache` is made
// of this; calls use the cache by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/cache_state.hpp"
#include "jitney/error.hpp"

namespace jitney {

struct CachedKernel {
    std::string spec;
    std::string digest;
    std::string compiler;  // "nvrtc13.0"
    std::string kind;      // "cubin" or "ptx"
    std::uint64_t bytes = 0;
    std::int64_t last_used = 0;  // seconds since 1970, to within an hour
    std::string path;
};

struct CacheExport {
    std::uint64_t exported = 0;
    std::vector<cache::BadEntry> left_out;  // damaged, or not to be read
    cache::Gaps gaps;
};

// The directories that the environment names (JITNEY_CACHE_DIR and its kin). What stands in them is
// never an error; that a file of the caller's can't be read or written is one.
class JITNEY_API Cache {
  public:
    // `warn` hears of values in the environment that can't be meant.
    explicit Cache(const std::function<void(std::string_view sentence)>& warn = {});
    ~Cache();
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    const std::string& private_root() const;  // empty: nothing is kept
    bool has_directories() const;             // the private one, or one that is read only
    std::uint64_t max_bytes() const;          // of the private one
    // Names in JITNEY_CACHE_TRUST that are none of the directories, and so trust nothing.
    std::vector<std::string> idle_trust() const;
    // Why nothing can be kept in the private directory, of which there has to be one: asked by
    // writing there. Empty where something can.
    std::string why_unwritable();

    // By layer, then by specialization. What could not be looked at is added to `gaps`.
    std::vector<CachedKernel> list(cache::Gaps* gaps = nullptr);
    cache::Statistics stat();
    cache::Verification verify();
    // The least recently used of the private directory, until it is of so many bytes; and all.
    cache::Removal prune(std::uint64_t max_bytes);
    cache::Removal clear();
    // All sound entries into one file, in the place of what stands there; and those of such a file,
    // as many as the size cap holds. Throw Error (io).
    CacheExport export_to(const std::string& path);
    cache::ImportReport import_from(const std::string& path);

  private:
    struct Body;
    std::unique_ptr<Body> body_;
};

// 123, 64K, 512M or 2G; nothing where it is none of these.
JITNEY_API std::optional<std::uint64_t> cache_bytes(std::string_view text);

}  // namespace jitney
