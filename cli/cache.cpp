// jitney cache: what stands in the cache on disk, and its upkeep.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/file.hpp"
#include "cli/output.hpp"
#include "jitney/cache.hpp"

namespace jitney::cli {

namespace {

[[noreturn]] void refuse_missing_directory() {
    throw Error(ErrorCode::io, "there is no cache directory: set JITNEY_CACHE_DIR to one");
}

std::string sentence_of_directory(const cache::BadEntry& directory) {
    return fmt::format(
        "the cache directory {} is not used: it {}; {}", directory.path, directory.reason,
        directory.mend.empty() ? "mend that, or set JITNEY_CACHE_DIR to a directory of your own"
                               : "to mend that, " + directory.mend);
}

// What would be wrong to say that all is well, since it could not look at all.
int status_of(const cache::Gaps& gaps) {
    for (const cache::BadEntry& directory : gaps.directories)
        print_error(sentence_of_directory(directory));
    for (const cache::BadEntry& file : gaps.files)
        print_error(fmt::format("{} {}, and is in no count", file.path, file.reason));
    return gaps.empty() ? kSuccess : kFailure;
}

void add(std::vector<cache::BadEntry>& all, const std::vector<cache::BadEntry>& more) {
    for (const cache::BadEntry& each : more) {
        const bool known = std::any_of(all.begin(), all.end(), [&](const cache::BadEntry& other) {
            return other.path == each.path;
        });
        if (!known) all.push_back(each);
    }
}

// Of one layer, and of all.
cache::Gaps gaps_of(const cache::LayerState& state) {
    cache::Gaps gaps{state.refused, state.unread};
    if (!state.refusal.empty())
        gaps.directories = {cache::BadEntry{state.root, state.refusal, state.mend}};
    return gaps;
}

cache::Gaps gaps_of(const cache::Statistics& statistics) {
    cache::Gaps gaps;
    for (const cache::LayerState& state : statistics.layers) {
        const cache::Gaps its = gaps_of(state);
        add(gaps.directories, its.directories);
        add(gaps.files, its.files);
    }
    return gaps;
}

void require_usable(Cache& store) {
    if (store.private_root().empty()) refuse_missing_directory();
    const cache::Gaps gaps = gaps_of(store.stat().layers.front());
    if (!gaps.directories.empty())
        throw Error(ErrorCode::io, sentence_of_directory(gaps.directories.front()));
}

void require_layers(const Cache& store) {
    if (!store.has_directories()) refuse_missing_directory();
}

Json json_of(const std::vector<cache::BadEntry>& bad) {
    Json list = Json::array();
    for (const cache::BadEntry& each : bad)
        list.push_back({{"file", each.path}, {"reason", each.reason}});
    return list;
}

// ", and 3 of another version of Jitney"; empty where there are none.
std::string text_of_others(std::uint64_t count) {
    return count == 0 ? std::string() : fmt::format(", and {} of another version of Jitney", count);
}

Json json_of(const cache::Gaps& gaps) {
    std::vector<cache::BadEntry> all = gaps.directories;
    all.insert(all.end(), gaps.files.begin(), gaps.files.end());
    return json_of(all);
}

// ", and 3 temporary files, 1.2 MiB"; empty where there are none.
std::string text_of_temps(std::uint64_t count, std::uint64_t bytes) {
    if (count == 0) return {};
    return fmt::format(", and {} temporary file{}, {}", count, plural(count), text_of_bytes(bytes));
}

Json json_of_temps(std::uint64_t count, std::uint64_t bytes) {
    return {{"files", count}, {"bytes", bytes}};
}

template <class State>  // a layer's, or of all of them
Json json_of_temps(const State& state) {
    Json json = json_of_temps(state.temps, state.temp_bytes);
    json["abandoned"] = state.abandoned_temps;
    return json;
}

// ", and 2 damaged files, which jitney cache verify names"; empty where there are none.
std::string text_of_rest(const cache::Statistics& statistics) {
    std::string text = text_of_others(statistics.other_versions);
    text += text_of_temps(statistics.temps, statistics.temp_bytes);
    if (const std::uint64_t count = statistics.abandoned_temps; count != 0) {
        text +=
            fmt::format(" ({} left by stopped processes, which jitney cache prune removes)", count);
    }
    if (const std::uint64_t count = statistics.damaged; count != 0) {
        text += fmt::format(", and {} damaged file{}, which jitney cache verify names", count,
                            plural(count));
    }
    return text;
}

int list(bool json) {
    Cache store(print_warning);
    require_layers(store);
    cache::Gaps gaps;
    const std::vector<CachedKernel> records = store.list(&gaps);
    const cache::Statistics statistics = store.stat();
    const cache::Gaps more = gaps_of(statistics);
    add(gaps.directories, more.directories);
    add(gaps.files, more.files);
    if (json) {
        Json entries = Json::array();
        for (const CachedKernel& record : records) {
            entries.push_back({{"spec", record.spec},
                               {"digest", record.digest},
                               {"bytes", record.bytes},
                               {"nvrtc", record.compiler},
                               {"kind", record.kind},
                               {"last_used", record.last_used},
                               {"path", record.path}});
        }
        print_json({{"entries", std::move(entries)},
                    {"damaged", statistics.damaged},
                    {"other_versions", statistics.other_versions},
                    {"unread", json_of(gaps)}});
        return status_of(gaps);
    }
    Table table({"specialization", "compiler", "bytes>", "last used (UTC)"});
    std::uint64_t bytes = 0;
    for (const CachedKernel& record : records) {
        bytes += record.bytes;
        table.add({record.spec, record.compiler, std::to_string(record.bytes),
                   text_of_time(record.last_used)});
    }
    if (!records.empty()) print(table.text());
    print(fmt::format("{} entr{}, {}{}\n", records.size(), plural(records.size(), "y", "ies"),
                      text_of_bytes(bytes), text_of_rest(statistics)));
    return status_of(gaps);
}

int stat(bool json) {
    Cache store(print_warning);
    require_layers(store);
    const cache::Statistics statistics = store.stat();
    if (json) {
        Json layers = Json::array();
        for (const cache::LayerState& layer : statistics.layers) {
            layers.push_back({{"root", layer.root},
                              {"writable", layer.writable},
                              {"exists", layer.exists},
                              {"refusal", layer.refusal},
                              {"refused", json_of(layer.refused)},
                              {"unread", json_of(layer.unread)},
                              {"entries", layer.entries},
                              {"bytes", layer.bytes},
                              {"damaged", json_of(layer.damaged)},
                              {"other_versions", layer.other_versions},
                              {"temporary", json_of_temps(layer)}});
        }
        print_json({{"root", store.private_root()},
                    {"entries", statistics.entries},
                    {"bytes", statistics.bytes},
                    {"damaged", statistics.damaged},
                    {"other_versions", statistics.other_versions},
                    {"temporary", json_of_temps(statistics)},
                    {"max_bytes", statistics.max_bytes},
                    {"layers", std::move(layers)}});
        return status_of(gaps_of(statistics));
    }
    Table table({"directory", "", "entries>", "bytes>", ""});
    for (const cache::LayerState& layer : statistics.layers) {
        std::string remark = layer.exists ? "" : "does not exist yet";
        if (!layer.refusal.empty()) remark = "not used: it " + layer.refusal;
        table.add({layer.root, layer.writable ? "private" : "read-only",
                   std::to_string(layer.entries), std::to_string(layer.bytes), remark});
    }
    print(table.text());
    print(fmt::format("{} entr{}, {}{}; the private directory is kept under {}\n",
                      statistics.entries, plural(statistics.entries, "y", "ies"),
                      text_of_bytes(statistics.bytes), text_of_rest(statistics),
                      text_of_bytes(statistics.max_bytes)));
    return status_of(gaps_of(statistics));
}

void print_bad(const std::vector<cache::BadEntry>& bad) {
    for (const cache::BadEntry& each : bad)
        print_sentence(fmt::format("{}: {}", each.path, each.reason));
}

std::string fate_of(const cache::Verification& verification) {
    const std::uint64_t stay = verification.bad_that_stay;
    if (stay == 0) return "and are replaced by it";
    const char* const stuck =
        "read-only layers are never changed, and neither a directory with something in it nor a "
        "file "
        "in a wrong place is removed";
    if (stay == verification.bad.size())
        return fmt::format("and stay, since {}: remove or mend them there", stuck);
    return fmt::format(
        "and are replaced by it, but for {} that stay{}, since {}: remove or mend those there",
        stay, stay == 1 ? "s" : "", stuck);
}

int verify(bool json) {
    Cache store(print_warning);
    require_layers(store);
    const cache::Verification verification = store.verify();
    if (json) {
        print_json({{"checked", verification.checked},
                    {"bad", json_of(verification.bad)},
                    {"other_versions", verification.other_versions},
                    {"unread", json_of(verification.gaps)}});
    } else {
        print_bad(verification.bad);
        print(fmt::format("{} entr{} checked, {} bad{}\n", verification.checked,
                          plural(verification.checked, "y", "ies"), verification.bad.size(),
                          text_of_others(verification.other_versions)));
    }
    const int status = status_of(verification.gaps);
    if (verification.bad.empty()) return status;
    print_error(fmt::format("{} of {} entries can't be used; they cost a compile each, {}",
                            verification.bad.size(), verification.checked, fate_of(verification)));
    return kFailure;
}

void print_removal(const cache::Removal& removal, bool json) {
    if (json) {
        print_json({{"removed", removal.removed_entries},
                    {"removed_bytes", removal.removed_bytes},
                    {"removed_temporary",
                     json_of_temps(removal.removed_temps, removal.removed_temp_bytes)},
                    {"entries", removal.entries},
                    {"bytes", removal.bytes},
                    {"temporary", json_of_temps(removal.temps, removal.temp_bytes)},
                    {"unread", json_of(removal.gaps)}});
        return;
    }
    print(fmt::format(
        "removed {} entr{}, {}{}; {} left, {}{}\n", removal.removed_entries,
        plural(removal.removed_entries, "y", "ies"), text_of_bytes(removal.removed_bytes),
        text_of_temps(removal.removed_temps, removal.removed_temp_bytes), removal.entries,
        text_of_bytes(removal.bytes), text_of_temps(removal.temps, removal.temp_bytes)));
}

// Whether all could be looked at, and nothing stands in the place of an entry.
int status_of(const cache::Removal& removal) {
    for (const cache::BadEntry& each : removal.stuck)
        print_error(fmt::format("{} {}", each.path, each.reason));
    const int status = status_of(removal.gaps);
    return removal.stuck.empty() ? status : kFailure;
}

int prune(const std::string& limit, bool json) {
    Cache store(print_warning);
    std::uint64_t max_bytes = store.max_bytes();
    if (!limit.empty()) {
        const std::optional<std::uint64_t> bytes = cache_bytes(limit);
        if (!bytes) {
            refuse(fmt::format(
                "--max-bytes is \"{}\", and must be a size such as 1073741824, 512M or 2G", limit));
        }
        max_bytes = *bytes;
    }
    require_usable(store);
    const cache::Removal removal = store.prune(max_bytes);
    print_removal(removal, json);
    const int status = status_of(removal);
    if (removal.bytes <= max_bytes) return status;
    print_error(fmt::format("{} entr{} could not be removed: {} are left, more than {}",
                            removal.entries, plural(removal.entries, "y", "ies"),
                            text_of_bytes(removal.bytes), text_of_bytes(max_bytes)));
    return kFailure;
}

int clear(bool json) {
    Cache store(print_warning);
    require_usable(store);
    const cache::Removal removal = store.clear();
    print_removal(removal, json);
    const int status = status_of(removal);
    if (removal.entries == 0) return status;
    print_error(fmt::format("{} entr{} could not be removed", removal.entries,
                            plural(removal.entries, "y", "ies")));
    return kFailure;
}

int export_to(const std::string& file, bool json) {
    Cache store(print_warning);
    require_layers(store);
    const CacheExport made = store.export_to(replaceable(file));
    std::vector<cache::BadEntry> left_out = made.left_out;
    // Those whose heads are damaged are in no list.
    for (const cache::LayerState& state : store.stat().layers)
        add(left_out, state.damaged);
    if (json) {
        print_json({{"file", file},
                    {"exported", made.exported},
                    {"left_out", json_of(left_out)},
                    {"unread", json_of(made.gaps)}});
    } else {
        print_bad(left_out);
        print_sentence(fmt::format("exported {} entr{} to {}", made.exported,
                                   plural(made.exported, "y", "ies"), file));
    }
    const int status = status_of(made.gaps);
    if (left_out.empty()) return status;
    print_error(fmt::format("{} entr{} could not be exported: {}", left_out.size(),
                            plural(left_out.size(), "y", "ies"), left_out.front().reason));
    return kFailure;
}

int import_from(const std::string& file, bool json) {
    Cache store(print_warning);
    require_usable(store);
    const cache::ImportReport report = store.import_from(file);
    if (json) {
        print_json({{"file", file},
                    {"imported", report.imported},
                    {"present", report.present},
                    {"left_out", report.left_out},
                    {"bad", json_of(report.bad)}});
    } else {
        print_bad(report.bad);
        print(fmt::format("imported {} entr{}, {} had been there\n", report.imported,
                          plural(report.imported, "y", "ies"), report.present));
    }
    if (report.left_out != 0) {
        print_error(
            fmt::format("{} entr{} of {} did not fit: the private directory is kept under {} "
                        "(JITNEY_CACHE_MAX_BYTES), so raise that and import again",
                        report.left_out, plural(report.left_out, "y", "ies"), file,
                        text_of_bytes(store.max_bytes())));
    }
    if (report.bad.empty()) return report.left_out == 0 ? kSuccess : kFailure;
    print_error(fmt::format("{} entr{} of {} could not be imported: {}", report.bad.size(),
                            plural(report.bad.size(), "y", "ies"), file,
                            report.bad.front().reason));
    return kFailure;
}

}  // namespace

void add_cache(CLI::App& root, Request& request) {
    CLI::App& group = add_group(
        root, request, "cache",
        "Look after the compiled kernels on disk (JITNEY_CACHE_DIR, else ~/.cache/jitney)");
    add_command(group, request, "list", "Every entry, with its specialization and size", list);
    add_command(group, request, "stat", "Directories, number of entries, size and limit", stat);
    add_command(group, request, "verify", "Read every entry and check it; fails if one is bad",
                verify);

    const auto limit = std::make_shared<std::string>();
    CLI::App& prune_command =
        add_command(group, request, "prune", "Remove the least recently used entries over a size",
                    [limit](bool json) { return prune(*limit, json); });
    prune_command
        .add_option("--max-bytes", *limit,
                    "Bytes to keep: 1073741824, 512M, 2G (JITNEY_CACHE_MAX_BYTES, else 1G)")
        ->type_name("SIZE");

    add_command(group, request, "clear", "Remove every entry of the private directory", clear);

    const auto target = std::make_shared<std::string>();
    add_command(group, request, "export", "Write all entries into one file, for another machine",
                [target](bool json) { return export_to(*target, json); })
        .add_option("FILE", *target, "The file to write")
        ->required()
        ->type_name("");

    const auto source = std::make_shared<std::string>();
    add_command(group, request, "import", "Take the entries of an exported file",
                [source](bool json) { return import_from(*source, json); })
        .add_option("FILE", *source, "The file to read")
        ->required()
        ->type_name("");
}

}  // namespace jitney::cli
