// Many entries in one file, to carry from one machine to another:
//
//     bundle := magic schema count item*         (count items, and nothing after the last)
//     magic  := 89 'J' 'I' 'T' 'B' 'N' 'D' 0a;   schema, count := u32
//     item   := bytes entry                      bytes := u64, the length of the entry
//
// Integers are little-endian; an entry is what its own file holds (cache/entry.hpp), checksum and
// all, so that an item which suffered on the way is left out and the others are imported.
#include <fmt/format.h>

#include <cerrno>
#include <climits>

#include "cache/little_endian.hpp"
#include "cache/publish.hpp"
#include "cache/session.hpp"
#include "cache/store.hpp"
#include "jitney/error.hpp"

namespace jitney::cache {

namespace {

constexpr std::string_view kMagic("\x89JITBND\n", 8);
constexpr std::uint64_t kHeaderBytes = 16;

[[noreturn]] void fail(const std::string& message) {
    throw Error(ErrorCode::io, message);
}

std::string entry_number(std::uint64_t number) {
    return fmt::format("entry {}", number);
}

// The whole file of an entry, and why it can't be exported. Neither where it has gone meanwhile.
struct Exported {
    std::string bytes;
    std::string fault;
};

Exported read_for_export(Layer& layer, const EntryName& name) {
    ReadFile file = layer.read(name.shard(), name.file());
    if (!file.present) {
        if (!file.obstacle.empty()) return {{}, "its directory " + file.obstacle};
        return {{}, file.refusal.empty() ? std::string() : "it " + file.refusal};
    }
    const Decoded<VerifiedEntry> decoded = decode_as(file.bytes, name);
    if (!decoded) return {{}, decoded.reason};
    return {std::move(file.bytes), {}};
}

// The entries that an import has put in place, or found there, under the size cap.
class Taken {
  public:
    Taken(Layer& layer, std::uint64_t max_bytes) : layer_(layer), max_bytes_(max_bytes) {}

    // More would push out what came before it.
    bool fits(std::uint64_t bytes) const { return bytes <= max_bytes_ - bytes_; }
    void add(const EntryName& name, std::uint64_t bytes, bool was_present) {
        bytes_ += bytes;
        all_.push_back({name, was_present});
    }

    // Counts what is still there: the size cap may have taken some for others.
    void count(ImportReport* report) {
        for (const Item& item : all_) {
            const Handle shard = layer_.open_shard(item.name.shard());
            struct stat status {};
            const bool there = shard && layer_.files().stat_at(
                                            shard.get(), item.name.file().c_str(), &status) == 0;
            ++(!there ? report->left_out : item.was_present ? report->present : report->imported);
        }
    }

  private:
    struct Item {
        EntryName name;
        bool was_present;
    };
    Layer& layer_;
    const std::uint64_t max_bytes_;
    std::uint64_t bytes_ = 0;
    std::vector<Item> all_;
};

}  // namespace

std::uint64_t Store::export_bundle(const std::string& path, const std::vector<Record>& records,
                                   std::vector<BadEntry>* left_out) {
    Session& current = session();
    const auto read = [&](const Record& record) -> Exported {
        if (record.layer >= current.layers.size()) return {};
        return read_for_export(*current.layers[record.layer],
                               {record.digest, record.compiler, record.kind});
    };
    // The count stands before the items, so the entries are read twice rather than held together.
    std::vector<const Record*> chosen;
    for (const Record& record : records) {
        const Exported entry = read(record);
        if (!entry.bytes.empty()) chosen.push_back(&record);
        if (!entry.fault.empty() && left_out != nullptr)
            left_out->push_back({record.path, entry.fault});
    }
    if (chosen.size() > UINT32_MAX) fail("too many entries for one bundle");
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    reap_bundles(current.files, directory);
    AtomicFile file(current.files, AT_FDCWD, directory, 0644, kBundleTempPrefix);
    std::string header(kMagic);
    put_u32(header, kSchema);
    put_u32(header, static_cast<std::uint32_t>(chosen.size()));
    bool written = file.write(header);
    for (const Record* record : chosen) {
        const std::string bytes = read(*record).bytes;
        if (bytes.empty())
            fail(fmt::format("{} changed during the export; export again", record->path));
        std::string length;
        put_u64(length, bytes.size());
        written = written && file.write(length) && file.write(bytes);
    }
    if (!written || !file.commit(path)) {
        fail(fmt::format("can't export to {}: {}", path, file.error()));
    }
    return chosen.size();
}

ImportReport Store::import_bundle(const std::string& path) {
    Session& current = session();
    Layer* const layer = current.writable();
    if (layer != nullptr && options_.max_bytes == 0) {
        fail(
            fmt::format("can't import {}: JITNEY_CACHE_MAX_BYTES=0 keeps nothing in the cache; "
                        "raise that, or unset it",
                        path));
    }
    if (layer == nullptr || !layer->open(true)) {
        fail(
            fmt::format("can't import {}: there is no cache directory to write to; set "
                        "JITNEY_CACHE_DIR to one of your own",
                        path));
    }
    const Handle file = open_file(current.files, AT_FDCWD, path, O_RDONLY);
    if (!file) fail(fmt::format("can't open {}: {}", path, error_text(errno)));
    const auto take = [&](std::uint64_t count) {
        std::string bytes;
        if (!read_bytes(current.files, file.get(), count, &bytes)) {
            fail(fmt::format("can't read {}: {}", path, error_text(errno)));
        }
        return bytes;
    };
    const std::string header = take(kHeaderBytes);
    if (header.size() < kHeaderBytes || !header.starts_with(kMagic)) {
        fail(fmt::format("{} is not a bundle of cache entries", path));
    }
    if (const std::uint32_t schema = get_u32(header, 8); schema != kSchema) {
        fail(
            fmt::format("{} has schema {}, this library reads schema {}; export it again with the "
                        "same version of the library",
                        path, schema, kSchema));
    }
    ImportReport report;
    Taken taken(*layer, options_.max_bytes);
    const std::uint32_t count = get_u32(header, 12);
    for (std::uint64_t number = 1; number <= count; ++number) {
        const std::string length = take(8);
        const std::uint64_t bytes = length.size() == 8 ? get_u64(length, 0) : 0;
        if (bytes == 0 || bytes > kMaxEntryBytes) {
            report.bad.push_back({entry_number(number), length.size() == 8
                                                            ? "its length is out of bounds"
                                                            : "the bundle ends before it"});
            taken.count(&report);
            return report;
        }
        const auto decoded = decode(take(bytes));
        if (!decoded) {
            report.bad.push_back({entry_number(number), decoded.reason});
            continue;
        }
        const Entry& entry = decoded.value->entry;
        const EntryName name = name_of(entry);
        if (!taken.fits(bytes)) {
            ++report.left_out;
        } else if (current.load(*layer, name, entry.material)) {
            taken.add(name, bytes, true);
        } else if (current.keep(entry)) {
            taken.add(name, bytes, false);
        } else {
            report.bad.push_back({entry_number(number), "it could not be written"});
        }
    }
    taken.count(&report);
    if (!take(1).empty()) report.bad.push_back({path, "something follows the last entry"});
    return report;
}

}  // namespace jitney::cache
