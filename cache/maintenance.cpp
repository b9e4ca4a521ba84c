// What the command line does to a whole cache.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cache/lock.hpp"
#include "cache/session.hpp"
#include "cache/store.hpp"
#include "cache/sweep.hpp"

namespace jitney::cache {

namespace {

std::string path_of(const Layer& layer, const ScannedFile& file) {
    return fmt::format("{}/{}/{}", layer.root(), file.shard, file.name);
}

// A file under an entry's name, as its head shows it, without reading its payload. Neither where it
// has gone meanwhile.
struct Seen {
    std::optional<Record> record;
    std::string damage;          // why it can't be an entry
    bool other_version = false;  // it has another schema, and nothing more is known of it
};

Seen look_at(Layer& layer, std::size_t number, const ScannedFile& file, const EntryName& name) {
    constexpr std::uint64_t kUsualHeadBytes = 16384;
    if (file.shard != name.shard())
        return {std::nullopt, "it stands in the wrong directory", false};
    for (const std::uint64_t limit : {kUsualHeadBytes, kMaxHeadBytes}) {
        const ReadFile read = layer.read(file.shard, file.name, limit);
        if (!read.present) {
            return {std::nullopt, read.refusal.empty() ? std::string() : "it " + read.refusal,
                    false};
        }
        const auto head = decode_head(read.bytes, read.identity.bytes);
        if (head.flaw == Flaw::needs_more) continue;
        if (head.flaw == Flaw::other_schema) return {std::nullopt, {}, true};
        if (!head) return {std::nullopt, head.reason, false};
        if (digest_of(head.value->material) != name.digest) {
            return {std::nullopt, "it holds another key than its name says", false};
        }
        return {Record{specialization_of(head.value->material), name.digest, name.compiler,
                       name.kind, head.value->material, file.identity.bytes, file.identity.modified,
                       number, path_of(layer, file)},
                {},
                false};
    }
    return {std::nullopt, "its head is larger than an entry's may be", false};
}

// All files under an entry's name in a layer.
template <class Take>
void look_at_all(Layer& layer, std::size_t number, std::vector<RefusedShard>* refused,
                 const Take& take) {
    for (const ScannedFile& file : layer.scan(refused)) {
        const auto name = EntryName::parse(file.name);
        if (name) take(file, look_at(layer, number, file, *name));
    }
}

Removal removal_of(const SweepResult& swept) {
    return {swept.removed_entries, swept.removed_bytes, swept.entries, swept.bytes};
}

}  // namespace

std::vector<Record> Store::list() {
    Session& current = session();
    std::vector<Record> records;
    for (std::size_t i = 0; i < current.layers.size(); ++i) {
        look_at_all(*current.layers[i], i, nullptr, [&records](const ScannedFile&, Seen seen) {
            if (seen.record) records.push_back(std::move(*seen.record));
        });
    }
    std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
        return std::tie(a.layer, a.specialization, a.path) <
               std::tie(b.layer, b.specialization, b.path);
    });
    return records;
}

Statistics Store::stat() {
    Session& current = session();
    Statistics statistics;
    statistics.max_bytes = options_.max_bytes;
    for (const auto& layer : current.layers) {
        LayerState state;
        state.root = layer->root();
        state.writable = layer->role() == Role::writable;
        state.exists = layer->open() != nullptr;
        state.refusal = layer->refusal();
        state.mend = layer->mend();
        state.trusted = layer->vouched();
        std::vector<RefusedShard> refused;
        look_at_all(*layer, 0, &refused, [&](const ScannedFile& file, const Seen& seen) {
            if (seen.record) {
                ++state.entries;
                state.bytes += file.identity.bytes;
            } else if (seen.other_version) {
                ++state.other_versions;
            } else if (!seen.damage.empty()) {
                state.damaged.push_back({path_of(*layer, file), seen.damage});
            }
        });
        for (const RefusedShard& each : refused)
            state.refused.push_back({fmt::format("{}/{}", state.root, each.shard), each.reason});
        statistics.entries += state.entries;
        statistics.bytes += state.bytes;
        statistics.damaged += state.damaged.size();
        statistics.other_versions += state.other_versions;
        statistics.layers.push_back(std::move(state));
    }
    return statistics;
}

Verification Store::verify() {
    Session& current = session();
    Verification verification;
    for (const auto& layer : current.layers) {
        for (const ScannedFile& file : layer->scan()) {
            const auto name = EntryName::parse(file.name);
            if (!name) continue;
            const ReadFile read = layer->read(file.shard, file.name);
            if (!read.present && read.refusal.empty()) continue;  // gone meanwhile
            const Decoded<VerifiedEntry> decoded = decode_as(read.bytes, *name);
            if (read.present && decoded.flaw == Flaw::other_schema) {
                ++verification.other_versions;
                continue;
            }
            ++verification.checked;
            std::string reason;
            if (!read.present) {
                reason = "it " + read.refusal;
            } else if (file.shard != name->shard()) {
                reason = "it stands in the wrong directory";
            } else {
                reason = decoded.reason;
            }
            if (reason.empty()) continue;
            verification.bad.push_back({path_of(*layer, file), reason});
            if (layer->role() == Role::readonly) ++verification.bad_in_layers;
        }
    }
    return verification;
}

Removal Store::prune(std::uint64_t max_bytes) {
    Layer* const layer = session().writable();
    if (layer == nullptr) return {};
    return removal_of(sweep(*layer, max_bytes, max_bytes));
}

Removal Store::clear() {
    return prune(0);
}

}  // namespace jitney::cache
