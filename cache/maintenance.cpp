// What the command line does to a whole cache.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cache/scan.hpp"
#include "cache/session.hpp"
#include "cache/store.hpp"
#include "cache/temporary.hpp"
#include "cache/usage.hpp"

namespace jitney::cache {

namespace {

// A file under an entry's name, as its head shows it, without reading its payload. Neither where it
// has gone meanwhile.
struct Seen {
    std::optional<Record> record;
    std::string damage;          // why it can't be an entry
    bool other_version = false;  // it has another schema, and nothing more is known of it
    std::string gap;             // why it could not be looked at
};

// The gap that a file leaves which was not read: nothing where it has gone meanwhile.
Seen seen_unread(const ReadFile& read) {
    Seen seen;
    if (!read.obstacle.empty()) {
        seen.gap = "can't be reached: its directory " + read.obstacle;
    } else if (read.unreadable) {
        seen.gap = read.refusal;
    } else if (!read.refusal.empty()) {
        seen.damage = "it " + read.refusal;
    }
    return seen;
}

Seen damaged(std::string why) {
    Seen seen;
    seen.damage = std::move(why);
    return seen;
}

void append(std::vector<BadEntry>& all, const std::vector<BadEntry>& more) {
    all.insert(all.end(), more.begin(), more.end());
}

Seen look_at(Layer& layer, std::size_t number, const ScannedFile& file, const EntryName& name) {
    constexpr std::uint64_t kUsualHeadBytes = 16384;
    if (file.shard != name.shard()) return damaged("it stands in the wrong directory");
    for (const std::uint64_t limit : {kUsualHeadBytes, kMaxHeadBytes}) {
        const ReadFile read = layer.read(file.shard, file.name, limit);
        if (!read.present) return seen_unread(read);
        const auto head = decode_head(read.bytes, read.identity.bytes);
        if (head.flaw == Flaw::needs_more) continue;
        Seen seen;
        seen.other_version = head.flaw == Flaw::other_schema;
        if (seen.other_version) return seen;
        if (!head) return damaged(head.reason);
        if (digest_of(head.value->material) != name.digest)
            return damaged("it holds another key than its name says");
        seen.record = Record{specialization_of(head.value->material),
                             name.digest,
                             name.compiler,
                             name.kind,
                             head.value->material,
                             file.identity.bytes,
                             file.identity.modified,
                             number,
                             path_of(layer, file)};
        return seen;
    }
    return damaged("its head is larger than an entry's may be");
}

// All files under an entry's name in a layer, and all under a temporary one.
template <class Take, class TakeTemp>
Scan look_at_all(Layer& layer, std::size_t number, const Take& take, const TakeTemp& take_temp) {
    Scan scanned = scan(layer);
    for (const ScannedFile& file : scanned.files) {
        if (const auto name = EntryName::parse(file.name)) {
            const Seen seen = look_at(layer, number, file, *name);
            if (!seen.gap.empty()) scanned.gaps.files.push_back({path_of(layer, file), seen.gap});
            take(file, seen);
        } else if (file.is_regular() && is_temp(file.name)) {
            take_temp(file);
        }
    }
    return scanned;
}

void add(Gaps& all, const Gaps& more) {
    append(all.directories, more.directories);
    append(all.files, more.files);
}

// Whether the entry, compiled again, is put where the file stands: not where it is a directory with
// something in it, and never in a wrong place.
bool is_replaceable(Layer& layer, const ScannedFile& file, const EntryName& name) {
    if (layer.role() == Role::readonly || file.shard != name.shard()) return false;
    if (!S_ISDIR(file.kind)) return true;
    const Handle shard = layer.open_shard(file.shard);
    const Handle opened = shard ? open_file(layer.files(), shard.get(), file.name,
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
                                : Handle();
    std::vector<std::string> names;
    return opened && layer.files().list(opened.get(), &names) == 0 && names.empty();
}

void check_entry(Layer& layer, const ScannedFile& file, const EntryName& name,
                 Verification* verification) {
    const ReadFile read = layer.read(file.shard, file.name);
    Seen seen = read.present ? Seen() : seen_unread(read);
    if (read.present) {
        const Decoded<VerifiedEntry> decoded = decode_as(read.bytes, name);
        if (decoded.flaw == Flaw::other_schema) {
            ++verification->other_versions;
            return;
        }
        seen.damage = file.shard == name.shard() ? decoded.reason
                                                 : std::string("it stands in the wrong directory");
    } else if (!seen.gap.empty()) {
        verification->gaps.files.push_back({path_of(layer, file), seen.gap});
        return;
    } else if (seen.damage.empty()) {
        return;  // gone meanwhile
    }
    ++verification->checked;
    if (seen.damage.empty()) return;
    verification->bad.push_back({path_of(layer, file), seen.damage});
    if (!is_replaceable(layer, file, name)) ++verification->bad_that_stay;
}

}  // namespace

std::vector<Record> Store::list(Gaps* gaps) {
    Session& current = session();
    std::vector<Record> records;
    for (std::size_t i = 0; i < current.layers.size(); ++i) {
        const Scan found = look_at_all(
            *current.layers[i], i,
            [&records](const ScannedFile&, const Seen& seen) {
                if (seen.record) records.push_back(*seen.record);
            },
            [](const ScannedFile&) {});
        if (gaps != nullptr) add(*gaps, found.gaps);
    }
    std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
        return std::tie(a.layer, a.specialization, a.path) <
               std::tie(b.layer, b.specialization, b.path);
    });
    return records;
}

namespace {

LayerState state_of(Layer& layer) {
    LayerState state;
    state.root = layer.root();
    state.writable = layer.role() == Role::writable;
    Scan scanned = look_at_all(
        layer, 0,
        [&](const ScannedFile& file, const Seen& seen) {
            if (seen.record) {
                ++state.entries;
                state.bytes += file.identity.bytes;
            } else if (seen.other_version) {
                ++state.other_versions;
            } else if (!seen.damage.empty()) {
                state.damaged.push_back({path_of(layer, file), seen.damage});
            }
        },
        [&](const ScannedFile& file) {
            const Handle shard = layer.open_shard(file.shard);
            if (!shard) return;
            FileSystem& files = layer.files();
            const Writer writer = writer_of(files, shard.get(), file.name, files.now(), false);
            if (writer == Writer::gone) return;
            ++state.temps;
            state.temp_bytes += file.identity.bytes;
            if (writer == Writer::none) ++state.abandoned_temps;
        });
    state.exists = scanned.exists;
    std::vector<BadEntry>& directories = scanned.gaps.directories;
    if (!scanned.exists && !directories.empty()) {
        state.refusal = directories.front().reason;
        directories.clear();
    }
    state.mend = layer.mend();
    state.trusted = layer.vouched();
    state.refused = std::move(directories);
    state.unread = std::move(scanned.gaps.files);
    return state;
}

}  // namespace

Statistics Store::stat() {
    Statistics statistics;
    statistics.max_bytes = options_.max_bytes;
    for (const auto& layer : session().layers) {
        LayerState state = state_of(*layer);
        statistics.entries += state.entries;
        statistics.bytes += state.bytes;
        statistics.damaged += state.damaged.size();
        statistics.other_versions += state.other_versions;
        statistics.temps += state.temps;
        statistics.temp_bytes += state.temp_bytes;
        statistics.abandoned_temps += state.abandoned_temps;
        statistics.layers.push_back(std::move(state));
    }
    return statistics;
}

Verification Store::verify() {
    Verification verification;
    for (const auto& layer : session().layers) {
        const Scan scanned = scan(*layer);
        add(verification.gaps, scanned.gaps);
        for (const ScannedFile& file : scanned.files) {
            if (const auto name = EntryName::parse(file.name))
                check_entry(*layer, file, *name, &verification);
        }
    }
    return verification;
}

Removal Store::prune(std::uint64_t max_bytes) {
    Layer* const layer = session().writable();
    if (layer == nullptr) return {};
    SweepResult swept = cache::prune(*layer, max_bytes);
    Removal removal;
    removal.removed_entries = swept.removed_entries;
    removal.removed_bytes = swept.removed_bytes;
    removal.removed_temps = swept.removed_temps;
    removal.removed_temp_bytes = swept.removed_temp_bytes;
    removal.entries = swept.entries;
    removal.bytes = swept.entry_bytes;
    removal.temps = swept.temps;
    removal.temp_bytes = swept.temp_bytes;
    removal.stuck = std::move(swept.stuck);
    removal.gaps = std::move(swept.gaps);
    return removal;
}

Removal Store::clear() {
    return prune(0);
}

}  // namespace jitney::cache
