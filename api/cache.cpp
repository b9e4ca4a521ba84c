#include "jitney/cache.hpp"

#include <algorithm>

#include "cache/store.hpp"

namespace jitney {
namespace {

cache::Options quiet_options(const cache::Warn& warn) {
    cache::Options options = cache::Options::from_environment(warn);
    options.warn = {};  // what a store would warn of is in its answers
    return options;
}

}  // namespace

struct Cache::Body {
    cache::Store store;
};

Cache::Cache(const std::function<void(std::string_view)>& warn)
    : body_(new Body{cache::Store(quiet_options(warn))}) {}

Cache::~Cache() = default;

const std::string& Cache::private_root() const {
    return body_->store.options().private_root;
}

bool Cache::has_directories() const {
    return !private_root().empty() || !body_->store.options().readonly_roots.empty();
}

std::uint64_t Cache::max_bytes() const {
    return body_->store.options().max_bytes;
}

std::vector<std::string> Cache::idle_trust() const {
    const cache::Options& all = body_->store.options();
    std::vector<std::string> idle;
    for (const std::string& trusted : all.trusted_roots) {
        cache::Options one;
        one.trusted_roots = {trusted};
        const auto is_it = [&one](const std::string& root) { return one.trusts(root); };
        if (!is_it(all.private_root) && std::ranges::none_of(all.readonly_roots, is_it)) {
            idle.push_back(trusted);
        }
    }
    return idle;
}

std::string Cache::why_unwritable() {
    return body_->store.why_unwritable();
}

std::vector<CachedKernel> Cache::list(cache::Gaps* gaps) {
    std::vector<CachedKernel> all;
    for (cache::Record& record : body_->store.list(gaps)) {
        all.push_back({std::move(record.specialization), record.digest.hex(),
                       std::move(record.compiler), std::string(cache::extension_of(record.kind)),
                       record.bytes, record.last_used, std::move(record.path)});
    }
    return all;
}

cache::Statistics Cache::stat() {
    return body_->store.stat();
}

cache::Verification Cache::verify() {
    return body_->store.verify();
}

cache::Removal Cache::prune(std::uint64_t max_bytes) {
    return body_->store.prune(max_bytes);
}

cache::Removal Cache::clear() {
    return body_->store.clear();
}

CacheExport Cache::export_to(const std::string& path) {
    CacheExport result;
    const std::vector<cache::Record> records = body_->store.list(&result.gaps);
    result.exported = body_->store.export_bundle(path, records, &result.left_out);
    return result;
}

cache::ImportReport Cache::import_from(const std::string& path) {
    return body_->store.import_bundle(path);
}

std::optional<std::uint64_t> cache_bytes(std::string_view text) {
    return cache::parse_bytes(text);
}

}  // namespace jitney
