#include "runtime/disk_cache.hpp"

#include "runtime/environment.hpp"
#include "runtime/log.hpp"
#include "runtime/nvrtc.hpp"

namespace jitney::runtime {

cache::Store& disk_cache() {
    static cache::Store* const store = new cache::Store(
        cache::Options::from_environment([](std::string_view message) { log::warn(message); }));
    return *store;
}

std::string disk_cache_places() {
    const cache::Options& options = disk_cache().options();
    std::string places = options.private_root;
    for (const std::string& root : options.readonly_roots) {
        if (!places.empty()) places += " and ";
        places += root;
    }
    return places.empty() ? "no directory" : places;
}

std::string preferred_compiler() {
    if (!jit_enabled()) return {};
    const std::optional<NvrtcLocation>& location = nvrtc_location();
    return location && location->version ? location->version->text() : std::string();
}

}  // namespace jitney::runtime
