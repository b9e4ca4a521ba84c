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

// The head of an entry's file, without reading its payload.
std::optional<EntryHead> read_head(Layer& layer, const ScannedFile& file) {
    constexpr std::uint64_t kUsualHeadBytes = 16384;
    for (const std::uint64_t limit : {kUsualHeadBytes, kMaxHeadBytes}) {
        const ReadFile read = layer.read(file.shard, file.name, limit);
        if (!read.present) return std::nullopt;
        auto decoded = decode_head(read.bytes, read.identity.bytes);
        if (decoded.flaw != Flaw::needs_more) return std::move(decoded.value);
    }
    return std::nullopt;
}

Removal removal_of(const SweepResult& swept) {
    return {swept.removed_entries, swept.removed_bytes, swept.entries, swept.bytes};
}

}  // namespace

std::vector<Record> Store::list() {
    Session& current = session();
    std::vector<Record> records;
    for (std::size_t i = 0; i < current.layers.size(); ++i) {
        Layer& layer = *current.layers[i];
        for (const ScannedFile& file : layer.scan()) {
            const auto name = EntryName::parse(file.name);
            if (!name || file.shard != name->shard()) continue;
            const auto head = read_head(layer, file);
            if (!head || digest_of(head->material) != name->digest) continue;
            records.push_back({specialization_of(head->material), name->digest, name->compiler,
                               name->kind, head->material, file.identity.bytes,
                               file.identity.modified, i, path_of(layer, file)});
        }
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
        std::vector<RefusedShard> refused;
        for (const ScannedFile& file : layer->scan(&refused)) {
            if (!file.regular || !EntryName::parse(file.name)) continue;
            ++state.entries;
            state.bytes += file.identity.bytes;
        }
        for (const RefusedShard& each : refused)
            state.refused.push_back({fmt::format("{}/{}", state.root, each.shard), each.reason});
        statistics.entries += state.entries;
        statistics.bytes += state.bytes;
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
            ++verification.checked;
            std::string reason;
            if (!read.present) {
                reason = "it " + read.refusal;
            } else if (file.shard != name->shard()) {
                reason = "it stands in the wrong directory";
            } else {
                reason = decode_as(read.bytes, *name).reason;
            }
            if (!reason.empty()) verification.bad.push_back({path_of(*layer, file), reason});
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
