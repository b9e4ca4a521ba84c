#include "cache/sweep.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "cache/lock.hpp"
#include "cache/temporary.hpp"

namespace jitney::cache {

namespace {

void clear_temporary(Layer& layer, const ScannedFile& temp, std::int64_t now, SweepResult* result) {
    const Handle shard = layer.open_shard(temp.shard);
    if (shard && writer_of(layer.files(), shard.get(), temp.name, now, true) == Writer::gone) {
        ++result->removed_temps;
        result->removed_temp_bytes += temp.identity.bytes;
    } else {
        ++result->temps;
        result->temp_bytes += temp.identity.bytes;
    }
}

// What is no file under an entry's name keeps that entry from being kept, or looks like one.
void clear_place(Layer& layer, const ScannedFile& file, SweepResult* result) {
    const Handle shard = layer.open_shard(file.shard);
    if (!shard) return;
    FileSystem& files = layer.files();
    const int failed = S_ISDIR(file.kind) ? files.rmdir(shard.get(), file.name.c_str())
                                          : files.unlink(shard.get(), file.name.c_str());
    if (failed == 0 || errno == ENOENT) return;
    result->stuck.push_back(
        {path_of(layer, file), "is no file and can't be removed: " + error_text(errno)});
}

// Older first. An hour ahead is what clocks may differ by, as a hit says when one does by more.
auto age_of(const ScannedFile& file, std::int64_t now) {
    const FileIdentity& id = file.identity;
    const bool dated_ahead = id.modified > now + kUseResolution;
    return std::make_tuple(!dated_ahead, std::min(id.modified, now), id.modified_detail,
                           std::string_view(file.name));
}

}  // namespace

SweepResult sweep(Layer& layer, std::uint64_t limit, std::uint64_t target, std::int64_t now) {
    SweepResult result;
    if (layer.role() != Role::writable) return result;
    Scan scanned = scan(layer);
    result.gaps = std::move(scanned.gaps);
    std::vector<ScannedFile> entries;
    for (ScannedFile& file : scanned.files) {
        if (EntryName::parse(file.name)) {
            if (!file.is_regular()) {
                clear_place(layer, file, &result);
                continue;
            }
            ++result.entries;
            result.entry_bytes += file.identity.bytes;
            entries.push_back(std::move(file));
        } else if (file.is_regular() && is_lock(file.name)) {
            if (const Handle shard = layer.open_shard(file.shard))
                KeyLock::reap(layer, shard, file.name);
        } else if (file.is_regular() && is_temp(file.name)) {
            clear_temporary(layer, file, now, &result);
        }
    }
    const auto bytes = [&result] { return result.entry_bytes + result.temp_bytes; };
    if (bytes() <= limit) return result;
    std::sort(entries.begin(), entries.end(), [now](const ScannedFile& a, const ScannedFile& b) {
        return age_of(a, now) < age_of(b, now);
    });
    for (const ScannedFile& file : entries) {
        if (bytes() <= target) break;
        const Handle shard = layer.open_shard(file.shard);
        if (!shard || !layer.remove(shard, file.name, file.identity)) continue;
        --result.entries;
        result.entry_bytes -= file.identity.bytes;
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
