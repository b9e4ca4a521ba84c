#include "cache/sweep.hpp"

#include <algorithm>
#include <tuple>

#include "cache/lock.hpp"

namespace jitney::cache {

namespace {

// Far in the future is as stale as far in the past: a clock was wrong when the file was written.
bool is_stale(std::int64_t modified, std::int64_t now) {
    constexpr std::int64_t kDay = 24 * 3600;
    return modified < now - kStaleAfter || modified > now + kDay;
}

void clear_leftover(Layer& layer, const ScannedFile& leftover, SweepResult* result) {
    const Handle shard = layer.open_shard(leftover.shard);
    if (!shard) return;
    if (is_lock(leftover.name)) {
        KeyLock::reap(layer, shard, leftover.name);
    } else if (layer.remove(shard, leftover.name, leftover.identity)) {
        ++result->removed_temps;
    }
}

}  // namespace

SweepResult sweep(Layer& layer, std::uint64_t limit, std::uint64_t target,
                  const std::optional<EntryName>& keep) {
    SweepResult result;
    if (layer.role() != Role::writable) return result;
    const std::string kept_name = keep ? keep->file() : std::string();
    std::vector<ScannedFile> scanned = layer.scan();
    std::int64_t now = layer.files().now();
    for (const ScannedFile& file : scanned) {
        // The time of the file just written is the file system's own clock, which on a network is
        // not this machine's.
        if (file.name == kept_name) now = file.identity.modified;
    }
    std::vector<ScannedFile> entries;
    for (ScannedFile& file : scanned) {
        if (!file.regular) continue;
        if (EntryName::parse(file.name)) {
            ++result.entries;
            result.bytes += file.identity.bytes;
            entries.push_back(std::move(file));
        } else if ((is_temp(file.name) || is_lock(file.name)) &&
                   is_stale(file.identity.modified, now)) {
            clear_leftover(layer, file, &result);
        }
    }
    if (result.bytes <= limit) return result;
    // A time to come, from a clock that was ahead, must not keep an entry for ever.
    const auto age_order = [now](const ScannedFile& a, const ScannedFile& b) {
        const auto rank = [now](const ScannedFile& file) {
            const FileIdentity& id = file.identity;
            return std::make_tuple(std::min(id.modified, now), id.modified_detail,
                                   std::string_view(file.name));
        };
        return rank(a) < rank(b);
    };
    std::sort(entries.begin(), entries.end(), age_order);
    for (const ScannedFile& file : entries) {
        if (result.bytes <= target) break;
        if (file.name == kept_name && file.identity.bytes <= limit) continue;
        const Handle shard = layer.open_shard(file.shard);
        if (!shard || !layer.remove(shard, file.name, file.identity)) continue;
        --result.entries;
        result.bytes -= file.identity.bytes;
        ++result.removed_entries;
        result.removed_bytes += file.identity.bytes;
    }
    return result;
}

void mark_used(Layer& layer, const ReadFile& file) {
    if (layer.role() != Role::writable) return;
    const std::int64_t age = layer.files().now() - file.identity.modified;
    if (age > kUseResolution || age < -kUseResolution) layer.files().touch(file.file.get());
}

}  // namespace jitney::cache
