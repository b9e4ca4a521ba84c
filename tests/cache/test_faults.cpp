// Every system call fails in every way: the caller gets the right bytes, and the next process an
// unharmed cache.
#include <map>

#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
using Mode = FaultyFiles::Mode;

namespace {

constexpr int kErrors[] = {EIO, EINTR, EMFILE, ESTALE, EACCES};
// Those of calls that change something, besides.
constexpr int kWriteErrors[] = {ENOSPC, EDQUOT, EXDEV, EBUSY, EROFS, ENOLCK, EOPNOTSUPP};

bool changes_something(const std::string& call) {
    return call != "read" && call != "stat" && call != "stat_at" && call != "list";
}

struct Scenario {
    const char* name;
    std::function<void(const std::string& root)> prepare;
    bool must_survive;  // the entry that was there is there afterwards
};

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all{
        {"nothing there", [](const std::string&) {}, false},
        {"a hit",
         [](const std::string& root) {
             Store store(options_for(root));
             REQUIRE(get(store).computed);
             set_age(path_of(root, sample_key()), 100000);
         },
         true},
        {"a damaged entry",
         [](const std::string& root) { write_file(path_of(root, sample_key()), "junk"); }, false},
        {"full, with leftovers",
         [](const std::string& root) {
             Store store(options_for(root));
             for (const char* variant : {"1", "2", "3"})
                 REQUIRE(get(store, variant).computed);
             for (const std::string& name :
                  {std::string("/.tmp-1-1-1"), "/.lock-" + sample_key().digest.hex()}) {
                 const std::string leftover =
                     root + "/" + sample_key("1").digest.hex().substr(0, 2) + name;
                 write_file(leftover, "half");
                 set_age(leftover, 8000);
             }
             for (const char* variant : {"1", "2", "3"}) {
                 set_age(path_of(root, sample_key(variant)), 8000);
             }
         },
         false}};
    return all;
}

Options faulty_options(const std::string& root, FaultyFiles& files) {
    Options options = options_for(root);
    options.file_system = &files;
    options.max_bytes = 4000;  // a few entries, so that publishing also evicts
    options.lock_timeout = std::chrono::milliseconds(200);
    return options;
}

// Returns the calls that were made.
std::vector<std::string> run_with_fault(const Scenario& scenario, Mode mode, long at, int error,
                                        bool half_writes = false) {
    INFO(scenario.name << ", fault at call " << at << ", errno " << error << ", mode "
                       << static_cast<int>(mode));
    TempDir temp(Place::memory);
    const std::string root = temp / "cache";
    scenario.prepare(root);
    const std::size_t descriptors = open_descriptors();
    FaultyFiles files;
    files.mode = mode;
    files.at = at;
    files.error = error;
    files.half_writes = half_writes;
    {
        WarningLog log;
        Options options = faulty_options(root, files);
        options.warn = log.sink();
        Store store(options);
        REQUIRE(get(store).right);
        REQUIRE(get(store).right);
        REQUIRE(log.count() <= 4);
    }
    REQUIRE(open_descriptors() == descriptors);
    if (scenario.must_survive) {
        Store after(options_for(root));
        REQUIRE(after.find(sample_key(), kCompiler).next().has_value());
    }
    Store after(options_for(root));
    REQUIRE(get(after).right);
    const Got again = get(after);
    REQUIRE(again.right);
    REQUIRE_FALSE(again.computed);
    REQUIRE(after.verify().bad.empty());
    return files.calls;
}

}  // namespace

TEST_CASE("one call fails once") {
    for (const Scenario& scenario : scenarios()) {
        const auto calls = run_with_fault(scenario, Mode::none, 0, 0);
        REQUIRE(calls.size() > 3);
        for (long at = 0; at < static_cast<long>(calls.size()); ++at) {
            for (const int error : kErrors)
                run_with_fault(scenario, Mode::once, at, error);
            if (!changes_something(calls[static_cast<std::size_t>(at)])) continue;
            for (const int error : kWriteErrors)
                run_with_fault(scenario, Mode::once, at, error);
        }
    }
}

TEST_CASE("every call fails from some moment on") {
    for (const Scenario& scenario : scenarios()) {
        const auto calls = run_with_fault(scenario, Mode::none, 0, 0);
        for (long at = 0; at < static_cast<long>(calls.size()); ++at) {
            for (const int error : {ENOSPC, EIO, EINTR, EMFILE, ESTALE}) {
                run_with_fault(scenario, Mode::from_then_on, at, error);
            }
        }
    }
}

TEST_CASE("short reads and writes are finished") {
    for (const Scenario& scenario : scenarios()) {
        const auto calls = run_with_fault(scenario, Mode::none, 0, 0, true);
        std::map<std::string, int> counts;
        for (const std::string& call : calls)
            ++counts[call];
        CHECK(counts["read"] > 3);
    }
}

TEST_CASE("one interrupted call is made again, and nothing is lost") {
    const Scenario& nothing = scenarios()[0];
    for (const char* name : {"open", "write", "fsync", "close", "rename", "flock"}) {
        TempDir temp;
        nothing.prepare(temp / "cache");
        FaultyFiles files;
        files.only = name;
        files.mode = Mode::once;
        files.error = EINTR;
        Store store(faulty_options(temp / "cache", files));
        REQUIRE(store.put(sample_key(), sample_entry()));
        if (std::string(name) == "flock") {
            REQUIRE(get(store).right);
        } else {
            REQUIRE_FALSE(files.calls.empty());
        }
        REQUIRE_FALSE(get(store).computed);
    }
}

TEST_CASE("a call that fails while publishing leaves no temporary file and one warning") {
    for (const char* name : {"write", "fsync", "close", "rename"}) {
        for (const int error : {ENOSPC, EDQUOT, EIO, EXDEV, ESTALE, EBUSY}) {
            TempDir temp;
            Store(options_for(temp / "cache")).put(sample_key("64"), sample_entry("64"));
            FaultyFiles files;
            files.only = name;
            files.mode = Mode::from_then_on;
            files.error = error;
            WarningLog log;
            Options options = faulty_options(temp / "cache", files);
            options.warn = log.sink();
            Store store(options);
            // The first close or two are those of directories; they lose nothing.
            REQUIRE_FALSE(store.put(sample_key(), sample_entry()));
            REQUIRE_FALSE(store.put(sample_key("256"), sample_entry("256")));
            REQUIRE(names_under(temp.path()).size() == 1);
            REQUIRE(log.count() == 1);
            REQUIRE(log.mentions(temp.path()));
        }
    }
}

TEST_CASE("an entry that can't be read for now is a miss, and stays") {
    for (const char* name : {"open", "read", "stat"}) {
        for (const int error : {EACCES, EIO, EMFILE, ESTALE}) {
            TempDir temp;
            const std::string root = temp / "cache";
            Store(options_for(root)).put(sample_key(), sample_entry());
            FaultyFiles files;
            files.only = name;
            files.mode = Mode::from_then_on;
            files.error = error;
            Store store(faulty_options(root, files));
            CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
            CHECK(exists(path_of(root, sample_key())));
        }
    }
}

TEST_CASE("without locks everything works, and one warning says that there are none") {
    TempDir temp;
    FaultyFiles files;
    files.only = "flock";
    files.mode = Mode::from_then_on;
    files.error = EOPNOTSUPP;
    WarningLog log;
    Options options = faulty_options(temp / "cache", files);
    options.warn = log.sink();
    Store store(options);
    for (const char* variant : {"1", "2"}) {
        CHECK(get(store, variant).computed);
        CHECK_FALSE(get(store, variant).computed);
    }
    CHECK(log.count() == 1);
    CHECK(log.mentions("lock"));
}

namespace {

// Everything that a command tells of the cache of three entries, and whether it tells of a gap.
struct Told {
    std::size_t listed = 0;
    std::uint64_t counted = 0;
    std::uint64_t checked = 0;
    bool list_gap = false;
    bool stat_gap = false;
    bool verify_gap = false;
};

Told tell(Store& store) {
    Told told;
    Gaps gaps;
    told.listed = store.list(&gaps).size();
    told.list_gap = !gaps.empty();
    const Statistics statistics = store.stat();
    const LayerState& layer = statistics.layers[0];
    told.counted = statistics.entries;
    told.stat_gap = !layer.refusal.empty() || !layer.refused.empty() || !layer.unread.empty();
    const Verification verification = store.verify();
    told.checked = verification.checked;
    told.verify_gap = !verification.gaps.empty();
    CHECK(verification.bad.empty());
    CHECK(statistics.damaged == 0);
    return told;
}

void fill_three(const std::string& root) {
    Store store(options_for(root));
    for (const char* variant : {"64", "128", "256"})
        REQUIRE(get(store, variant).computed);
}

}  // namespace

TEST_CASE("a list that leaves something out says so, whatever could not be read") {
    for (const char* name : {"open", "list", "read", "stat", "stat_at"}) {
        for (const int error : {EMFILE, EIO, ENOMEM, EACCES}) {
            TempDir temp(Place::memory);
            const std::string root = temp / "cache";
            fill_three(root);
            long calls = 0;
            {
                FaultyFiles files;
                files.only = name;
                Store store(faulty_options(root, files));
                const Told told = tell(store);
                CHECK(told.listed == 3);
                CHECK_FALSE(told.list_gap);
                CHECK_FALSE(told.stat_gap);
                CHECK_FALSE(told.verify_gap);
                calls = static_cast<long>(files.calls.size());
            }
            for (const Mode mode : {Mode::once, Mode::from_then_on}) {
                for (long at = 0; at < calls; ++at) {
                    INFO(name << " " << at << " of " << calls << ", errno " << error << ", mode "
                              << static_cast<int>(mode));
                    FaultyFiles files;
                    files.only = name;
                    files.mode = mode;
                    files.at = at;
                    files.error = error;
                    Store store(faulty_options(root, files));
                    const Told told = tell(store);
                    REQUIRE(told.list_gap == (told.listed != 3));
                    REQUIRE(told.stat_gap == (told.counted != 3));
                    REQUIRE(told.verify_gap == (told.checked != 3));
                }
            }
        }
    }
}

TEST_CASE("what can't be listed is not cleared, and not said to be") {
    for (const char* name : {"open", "list", "stat_at"}) {
        TempDir temp;
        const std::string root = temp / "cache";
        fill_three(root);
        FaultyFiles files;
        files.only = name;
        files.mode = Mode::from_then_on;
        files.at = 2;
        files.error = EMFILE;
        Store store(faulty_options(root, files));
        const Removal removal = store.clear();
        CHECK(removal.removed_entries < 3);
        CHECK_FALSE(removal.gaps.empty());
    }
}

TEST_CASE("an export names what it leaves out") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill_three(root);
    FaultyFiles files;
    Store store(faulty_options(root, files));
    const std::vector<Record> records = store.list();
    REQUIRE(records.size() == 3);
    write_file(records[0].path, "junk");
    files.only = "read";
    files.mode = Mode::once;
    files.calls.clear();
    files.at = 3;  // two for the first entry and its end, so within the second
    files.error = EIO;
    std::vector<BadEntry> left_out;
    CHECK(store.export_bundle(temp / "bundle", records, &left_out) == 1);
    REQUIRE(left_out.size() == 2);
    CHECK(left_out[0].path == records[0].path);
    CHECK(left_out[1].path == records[1].path);
    CHECK(left_out[1].reason.find("Input/output error") != std::string::npos);
}
