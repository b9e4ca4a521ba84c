// jitney cache: what stands in the cache on disk, and its upkeep.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cache/store.hpp"
#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/file.hpp"
#include "cli/output.hpp"

namespace jitney::cli {

namespace {

// That a directory is refused is an error here, no warning.
cache::Options options() {
    cache::Options quiet = cache::Options::from_environment(print_warning);
    quiet.warn = {};
    return quiet;
}

[[noreturn]] void refuse_missing_directory() {
    throw Error(ErrorCode::io, "there is no cache directory: set JITNEY_CACHE_DIR to one");
}

// Why the directory, or one in it, is not used; empty where all of it is.
std::string refusal_of(const cache::LayerState& state) {
    const auto sentence = [&state](const std::string& path, const std::string& reason) {
        return fmt::format("the cache directory {} is not used: it {}; {}", path, reason,
                           state.mend.empty() ? "mend that, or set JITNEY_CACHE_DIR to a directory "
                                                "of your own"
                                              : "to mend that, " + state.mend);
    };
    if (!state.refusal.empty()) return sentence(state.root, state.refusal);
    if (state.refused.empty()) return {};
    return sentence(state.refused.front().path, state.refused.front().reason);
}

void require_usable(cache::Store& store) {
    if (store.options().private_root.empty()) refuse_missing_directory();
    const std::string refusal = refusal_of(store.stat().layers.front());
    if (!refusal.empty()) throw Error(ErrorCode::io, refusal);
}

// What looks at every entry would be wrong to say that all is well where there is none to look
// at, or one is refused.
int status_of_directories(const std::vector<cache::LayerState>& layers) {
    if (layers.empty()) refuse_missing_directory();
    for (const cache::LayerState& state : layers) {
        const std::string refusal = refusal_of(state);
        if (refusal.empty()) continue;
        print_error(refusal);
        return kFailure;
    }
    return kSuccess;
}

int status_of_directories(cache::Store& store) {
    return status_of_directories(store.stat().layers);
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

// ", and 2 damaged files, which jitney cache verify names"; empty where there are none.
std::string text_of_rest(const cache::Statistics& statistics) {
    std::string text = text_of_others(statistics.other_versions);
    if (const std::uint64_t count = statistics.damaged; count != 0) {
        text += fmt::format(", and {} damaged file{}, which jitney cache verify names", count,
                            plural(count));
    }
    return text;
}

int list(bool json) {
    cache::Store store(options());
    const std::vector<cache::Record> records = store.list();
    const cache::Statistics statistics = store.stat();
    if (json) {
        Json entries = Json::array();
        for (const cache::Record& record : records) {
            entries.push_back({{"spec", record.specialization},
                               {"digest", record.digest.hex()},
                               {"bytes", record.bytes},
                               {"nvrtc", record.compiler},
                               {"kind", std::string(cache::extension_of(record.kind))},
                               {"last_used", record.last_used},
                               {"path", record.path}});
        }
        print_json({{"entries", std::move(entries)},
                    {"damaged", statistics.damaged},
                    {"other_versions", statistics.other_versions}});
        return status_of_directories(statistics.layers);
    }
    Table table({"specialization", "compiler", "bytes>", "last used (UTC)"});
    std::uint64_t bytes = 0;
    for (const cache::Record& record : records) {
        bytes += record.bytes;
        table.add({record.specialization, record.compiler, std::to_string(record.bytes),
                   text_of_time(record.last_used)});
    }
    if (!records.empty()) print(table.text());
    print(fmt::format("{} entr{}, {}{}\n", records.size(), plural(records.size(), "y", "ies"),
                      text_of_bytes(bytes), text_of_rest(statistics)));
    return status_of_directories(statistics.layers);
}

int stat(bool json) {
    cache::Store store(options());
    const cache::Statistics statistics = store.stat();
    if (json) {
        Json layers = Json::array();
        for (const cache::LayerState& layer : statistics.layers) {
            layers.push_back({{"root", layer.root},
                              {"writable", layer.writable},
                              {"exists", layer.exists},
                              {"refusal", layer.refusal},
                              {"refused", json_of(layer.refused)},
                              {"entries", layer.entries},
                              {"bytes", layer.bytes},
                              {"damaged", json_of(layer.damaged)},
                              {"other_versions", layer.other_versions}});
        }
        print_json({{"root", store.options().private_root},
                    {"entries", statistics.entries},
                    {"bytes", statistics.bytes},
                    {"damaged", statistics.damaged},
                    {"other_versions", statistics.other_versions},
                    {"max_bytes", statistics.max_bytes},
                    {"layers", std::move(layers)}});
        return status_of_directories(statistics.layers);
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
    return status_of_directories(statistics.layers);
}

void print_bad(const std::vector<cache::BadEntry>& bad) {
    for (const cache::BadEntry& each : bad)
        print(fmt::format("{}: {}\n", each.path, each.reason));
}

std::string fate_of(const cache::Verification& verification) {
    const std::uint64_t stay = verification.bad_in_layers;
    if (stay == 0) return "and are replaced by it";
    if (stay == verification.bad.size()) {
        return "and stay, as read-only layers are never changed: remove or mend them there";
    }
    return fmt::format(
        "and are replaced by it, but for {} in read-only layers: remove or mend those there", stay);
}

int verify(bool json) {
    cache::Store store(options());
    const cache::Verification verification = store.verify();
    if (json) {
        print_json({{"checked", verification.checked},
                    {"bad", json_of(verification.bad)},
                    {"other_versions", verification.other_versions}});
    } else {
        print_bad(verification.bad);
        print(fmt::format("{} entr{} checked, {} bad{}\n", verification.checked,
                          plural(verification.checked, "y", "ies"), verification.bad.size(),
                          text_of_others(verification.other_versions)));
    }
    if (verification.bad.empty()) return status_of_directories(store);
    print_error(fmt::format("{} of {} entries can't be used; they cost a compile each, {}",
                            verification.bad.size(), verification.checked, fate_of(verification)));
    return kFailure;
}

void print_removal(const cache::Removal& removal, bool json) {
    if (json) {
        print_json({{"removed", removal.removed_entries},
                    {"removed_bytes", removal.removed_bytes},
                    {"entries", removal.entries},
                    {"bytes", removal.bytes}});
        return;
    }
    print(fmt::format("removed {} entr{}, {}; {} left, {}\n", removal.removed_entries,
                      plural(removal.removed_entries, "y", "ies"),
                      text_of_bytes(removal.removed_bytes), removal.entries,
                      text_of_bytes(removal.bytes)));
}

int prune(const std::string& limit, bool json) {
    cache::Store store(options());
    std::uint64_t max_bytes = store.options().max_bytes;
    if (!limit.empty()) {
        const std::optional<std::uint64_t> bytes = cache::parse_bytes(limit);
        if (!bytes) {
            refuse(fmt::format(
                "--max-bytes is \"{}\", and must be a size such as 1073741824, 512M or 2G", limit));
        }
        max_bytes = *bytes;
    }
    require_usable(store);
    const cache::Removal removal = store.prune(max_bytes);
    print_removal(removal, json);
    if (removal.bytes <= max_bytes) return kSuccess;
    print_error(fmt::format("{} entr{} could not be removed: {} are left, more than {}",
                            removal.entries, plural(removal.entries, "y", "ies"),
                            text_of_bytes(removal.bytes), text_of_bytes(max_bytes)));
    return kFailure;
}

int clear(bool json) {
    cache::Store store(options());
    require_usable(store);
    const cache::Removal removal = store.clear();
    print_removal(removal, json);
    if (removal.entries == 0) return kSuccess;
    print_error(fmt::format("{} entr{} could not be removed", removal.entries,
                            plural(removal.entries, "y", "ies")));
    return kFailure;
}

int export_to(const std::string& file, bool json) {
    cache::Store store(options());
    const std::uint64_t count = store.export_bundle(replaceable(file), store.list());
    if (json) {
        print_json({{"file", file}, {"exported", count}});
    } else {
        print(fmt::format("exported {} entr{} to {}\n", count, plural(count, "y", "ies"), file));
    }
    return status_of_directories(store);
}

int import_from(const std::string& file, bool json) {
    cache::Store store(options());
    require_usable(store);
    const cache::ImportReport report = store.import_bundle(file);
    if (json) {
        print_json({{"file", file},
                    {"imported", report.imported},
                    {"present", report.present},
                    {"bad", json_of(report.bad)}});
    } else {
        print_bad(report.bad);
        print(fmt::format("imported {} entr{}, {} had been there\n", report.imported,
                          plural(report.imported, "y", "ies"), report.present));
    }
    if (report.bad.empty()) return kSuccess;
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
