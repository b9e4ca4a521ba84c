// The size cap: what is removed, what is spared, and what clocks can do about it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cache/temporary.hpp"
#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;

namespace {

std::uint64_t entry_bytes(std::string_view variant = "1") {
    return encode(sample_entry(variant)).size();
}

std::uint64_t bytes_of_entries(const std::string& root) {
    std::uint64_t bytes = 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(root)) {
        std::error_code gone;
        const std::uintmax_t size = item.file_size(gone);
        if (item.path().extension() == ".cubin" && !gone) bytes += size;
    }
    return bytes;
}

Options capped(const std::string& root, std::uint64_t max_bytes) {
    Options options = options_for(root);
    options.max_bytes = max_bytes;
    return options;
}

// Which of the single-digit variants are on disk.
std::string present(const std::string& root) {
    std::string found;
    for (char c = '0'; c <= '9'; ++c) {
        if (exists(path_of(root, sample_key(std::string(1, c))))) found += c;
    }
    return found;
}

void fill(const std::string& root, std::string_view variants) {
    Store store(options_for(root));
    for (const char c : variants)
        REQUIRE(get(store, std::string(1, c)).computed);
}

}  // namespace

TEST_CASE("above the cap, the least recently used go, down to nine tenths") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "0123456789");
    for (char c = '0'; c <= '9'; ++c) {
        set_age(path_of(root, sample_key(std::string(1, c))), 1000 * (c - '0') + 10);
    }
    const std::uint64_t one = entry_bytes();
    Store store(capped(root, 10 * one));
    const Got got = get(store, "n");
    CHECK(got.computed);
    CHECK(present(root) == "01234567");  // eleven entries down to nine, the new one among them
    CHECK(exists(path_of(root, sample_key("n"))));
}

TEST_CASE("exactly at the cap nothing goes") {
    TempDir temp;
    const std::string root = temp / "cache";
    Store store(capped(root, 4 * entry_bytes()));
    for (const char* variant : {"0", "1", "2", "3"})
        REQUIRE(get(store, variant).computed);
    CHECK(present(root) == "0123");
    REQUIRE(get(store, "4").computed);
    CHECK(present(root).size() == 3);
    CHECK(present(root).back() == '4');
}

TEST_CASE("a cap smaller than an entry keeps nothing and spares what is there") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "0");
    WarningLog log;
    Options options = capped(root, entry_bytes() - 1);
    options.warn = log.sink();
    Store store(options);
    CHECK_FALSE(get(store, "0").computed);
    const Outcome outcome =
        store.get_or_compute(sample_key("1"), kCompiler, [] { return sample_entry("1"); });
    CHECK(outcome.origin == Origin::computed);
    CHECK_FALSE(outcome.kept);
    CHECK(present(root) == "0");
    CHECK(log.count() == 1);
    CHECK(log.mentions("JITNEY_CACHE_MAX_BYTES"));
}

TEST_CASE("a cap of one entry keeps the last one") {
    TempDir temp;
    const std::string root = temp / "cache";
    Store store(capped(root, entry_bytes()));
    for (const char* variant : {"0", "1", "2"}) {
        REQUIRE(get(store, variant).computed);
        CHECK(present(root) == variant);
    }
}

TEST_CASE("a cap of zero writes nothing, and says nothing") {
    TempDir temp;
    const std::string root = temp / "cache";
    WarningLog log;
    Options options = capped(root, 0);
    options.warn = log.sink();
    Store store(options);
    CHECK(get(store).computed);
    CHECK(get(store).computed);
    CHECK_FALSE(exists(root));
    CHECK(log.count() == 0);
    fill(root, "0");
    CHECK_FALSE(get(store, "0").computed);
}

TEST_CASE("a hit makes an entry young again, but not at every hit") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "01");
    FaultyFiles files;
    files.only = "touch";
    Options options = capped(root, 1U << 30);
    options.file_system = &files;
    Store store(options);
    CHECK_FALSE(get(store, "0").computed);
    CHECK(files.calls.empty());  // it was written a moment ago
    set_age(path_of(root, sample_key("0")), 7200);
    set_age(path_of(root, sample_key("1")), 7100);
    for (int i = 0; i < 5; ++i)
        CHECK_FALSE(get(store, "0").computed);
    CHECK(files.calls.size() == 1);
    store.prune(entry_bytes());
    CHECK(present(root) == "0");
}

TEST_CASE("clocks a day off, or in 1970, cost nothing but the order") {
    for (const long now_offset : {-86400L, 0L, 86400L}) {
        for (const long age : {-86400L * 400, -86400L, 86400L, 86400L * 400}) {
            class Clock : public QuickFiles {
              public:
                std::int64_t offset = 0;
                std::int64_t now() override { return QuickFiles::now() + offset; }
            };
            TempDir temp;
            const std::string root = temp / "cache";
            fill(root, "012");
            for (const char* variant : {"0", "1"}) {
                set_age(path_of(root, sample_key(variant)), age);
            }
            set_time(path_of(root, sample_key("2")), 0);
            Clock files;
            files.offset = now_offset;
            Options options = capped(root, 3 * entry_bytes());
            options.file_system = &files;
            Store store(options);
            for (const char* variant : {"0", "1", "2"}) {
                const Got got = get(store, variant);
                REQUIRE(got.right);
                REQUIRE_FALSE(got.computed);
            }
            REQUIRE(get(store, "3").computed);
            const std::string left = present(root);
            REQUIRE(left.size() == 2);
            REQUIRE(left.back() == '3');
        }
    }
}

TEST_CASE("entries dated beyond now count as the oldest") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "0123");
    set_age(path_of(root, sample_key("0")), 5000);
    set_age(path_of(root, sample_key("1")), -86400L * 4000);
    set_age(path_of(root, sample_key("2")), -2 * 3600);
    set_age(path_of(root, sample_key("3")), -600);  // clocks may differ by that
    Store store(options_for(root));
    store.prune(2 * entry_bytes());
    CHECK(present(root) == "03");
    store.prune(entry_bytes());
    CHECK(present(root) == "3");
}

TEST_CASE("leftovers that nobody holds are cleared at once, live writers and strangers are not") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "0");
    const std::string shard = root + "/" + sample_key("0").digest.hex().substr(0, 2) + "/";
    const std::string lock = ".lock-" + sample_key("0").digest.hex();
    for (const std::string& name :
         {std::string(".tmp-1-0-a"), std::string(".tmp-1-0-b"), std::string("README"), lock}) {
        write_file(shard + name, "half");
    }
    set_age(shard + ".tmp-1-0-b", -100000);
    write_file(root + "/notes", "a file of the user's");
    QuickFiles files;
    Temporary written = Temporary::create(files, AT_FDCWD, shard, kTempPrefix, 0600);
    REQUIRE(::write(written.file.get(), "12345", 5) == 5);
    set_age(written.name, 100000);

    Store store(options_for(root));
    const Statistics before = store.stat();
    CHECK(before.temps == 3);
    CHECK(before.abandoned_temps == 2);
    CHECK(before.temp_bytes == 4 + 4 + 5);
    CHECK(before.layers[0].abandoned_temps == 2);

    const Removal removal = store.clear();
    CHECK(removal.removed_temps == 2);
    CHECK(removal.removed_temp_bytes == 8);
    CHECK(removal.temps == 1);
    CHECK(removal.temp_bytes == 5);
    CHECK(present(root).empty());
    CHECK_FALSE(exists(shard + ".tmp-1-0-a"));
    CHECK_FALSE(exists(shard + ".tmp-1-0-b"));
    CHECK_FALSE(exists(shard + lock));
    CHECK(exists(written.name));
    CHECK(exists(shard + "README"));
    CHECK(exists(root + "/notes"));
    CHECK(store.stat().abandoned_temps == 0);
}

TEST_CASE("without locks, age tells what is left over") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "0");
    const std::string shard = root + "/" + sample_key("0").digest.hex().substr(0, 2) + "/";
    for (const char* name : {".tmp-1-0-a", ".tmp-1-0-b"})
        write_file(shard + name, "half");
    set_age(shard + ".tmp-1-0-a", 3700);
    FaultyFiles files;
    files.only = "flock";
    files.mode = FaultyFiles::Mode::from_then_on;
    files.error = EOPNOTSUPP;
    Options options = options_for(root);
    options.file_system = &files;
    const Removal removal = Store(options).prune(UINT64_MAX);
    CHECK(removal.removed_temps == 1);
    CHECK_FALSE(exists(shard + ".tmp-1-0-a"));
    CHECK(exists(shard + ".tmp-1-0-b"));
}

TEST_CASE("a lock that is held is not cleared, however old its file is") {
    TempDir temp;
    const std::string root = temp / "cache";
    Store store(options_for(root));
    store.get_or_compute(sample_key(), kCompiler, [&] {
        const auto locks = names_under(root, ".lock-");
        REQUIRE(locks.size() == 1);
        const std::string lock =
            root + "/" + sample_key().digest.hex().substr(0, 2) + "/" + locks[0];
        set_age(lock, 100000);
        Store(options_for(root)).prune(UINT64_MAX);
        CHECK(exists(lock));
        return sample_entry();
    });
    CHECK(names_under(root, ".lock-").empty());
}

TEST_CASE("eviction spares an entry that was used after it was counted") {
    // Touches the oldest entry just before it would be removed.
    class LateUse : public QuickFiles {
      public:
        std::string oldest;
        int stat_at(int directory, const char* name, struct stat* result) override {
            if (armed && oldest.ends_with(name)) {
                if (seen++ == 1) set_age(oldest, 0);
            }
            return QuickFiles::stat_at(directory, name, result);
        }
        bool armed = false;
        int seen = 0;
    };
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "01");
    set_age(path_of(root, sample_key("0")), 9000);
    set_age(path_of(root, sample_key("1")), 8000);
    LateUse files;
    files.oldest = path_of(root, sample_key("0"));
    files.armed = true;
    Options options = options_for(root);
    options.file_system = &files;
    Store store(options);
    store.prune(entry_bytes());
    CHECK(files.seen == 2);
    CHECK(present(root) == "0");
}

TEST_CASE("other processes' entries are counted too, sooner or later") {
    TempDir temp;
    const std::string root = temp / "cache";
    const std::uint64_t cap = 100 * entry_bytes("100");
    Store store(capped(root, cap));
    REQUIRE(get(store, "first").computed);
    Store other(options_for(root));  // knows no cap that small
    for (int i = 100; i < 250; ++i)
        REQUIRE(get(other, std::to_string(i)).computed);
    for (int i = 300; i < 370; ++i)
        REQUIRE(get(store, std::to_string(i)).computed);
    CHECK(store.stat().bytes <= cap);
}

TEST_CASE("entries that no account knows of are counted, sooner or later") {
    TempDir temp;
    const std::string root = temp / "cache";
    const std::string elsewhere = temp / "elsewhere";
    const std::uint64_t cap = 100 * entry_bytes("100");
    Store store(capped(root, cap));
    REQUIRE(get(store, "first").computed);
    // An earlier version keeps no account, and neither does cp.
    Store other(options_for(elsewhere));
    for (int i = 100; i < 200; ++i) {
        const Key key = sample_key(std::to_string(i));
        REQUIRE(get(other, std::to_string(i)).computed);
        ::mkdir((root + "/" + key.digest.hex().substr(0, 2)).c_str(), 0700);
        REQUIRE(::rename(path_of(elsewhere, key).c_str(), path_of(root, key).c_str()) == 0);
    }
    for (int i = 300; i < 370; ++i)
        REQUIRE(get(store, std::to_string(i)).computed);
    CHECK(store.stat().bytes <= cap);
}

TEST_CASE("writers that do not know of each other stay under the cap together") {
    // Each fills the cache alone, without an end of its own; what is there is counted meanwhile.
    constexpr int kWriters = 4;
    constexpr int kEntries = 40;
    TempDir temp(Place::memory);
    const std::string root = temp / "cache";
    const std::uint64_t one = entry_bytes("1000");
    const std::uint64_t cap = 12 * one;
    std::vector<int> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
        writers.push_back(start_child([&, writer] {
            Store store(capped(root, cap));
            for (int i = 0; i < kEntries; ++i) {
                const std::string variant = std::to_string(1000 + writer * kEntries + i);
                if (!get(store, variant).right) return 1;
                // A walk takes its time, in which entries go that it has counted and others come:
                // it is repeated before it is believed.
                int too_many = 0;
                while (too_many < 20 && bytes_of_entries(root) > cap + kWriters * one)
                    ++too_many;
                if (too_many == 20) return 2;
            }
            return 0;
        }));
    }
    for (const int writer : writers)
        CHECK(wait_child(writer) == 0);
    // A count does not see what is reserved and not yet begun.
    CHECK(Store(options_for(root)).stat().bytes <= cap + kWriters * one);
    CHECK(Store(options_for(root)).stat().bytes >= cap / 2);
}

TEST_CASE("the sum of the bytes is one of all writers, and is counted anew where it is lost") {
    TempDir temp;
    const std::string root = temp / "cache";
    const std::uint64_t one = entry_bytes("1");
    Store first(capped(root, 4 * one));
    Store second(capped(root, 4 * one));
    for (const char* variant : {"0", "1"}) {
        REQUIRE(get(first, variant).computed);
        REQUIRE(get(second, std::string(1, static_cast<char>(variant[0] + 2))).computed);
    }
    CHECK(read_file(root + "/.usage") == "jitney-usage 1 " + std::to_string(4 * one) + " 4\n");
    REQUIRE(get(second, "4").computed);  // over the cap, down to nine tenths
    CHECK(present(root).size() == 3);
    char variant = '5';
    for (const char* text : {"", "junk", "jitney-usage 1 5", "jitney-usage 1 0 0\nmore"}) {
        write_file(root + "/.usage", text);
        REQUIRE(get(first, std::string(1, variant++)).computed);
        CHECK(first.stat().bytes <= 4 * one);
        CHECK(read_file(root + "/.usage").starts_with("jitney-usage 1 "));
    }
}

TEST_CASE("entries that can't be removed keep new ones out, and a warning says why") {
    TempDir temp;
    const std::string root = temp / "cache";
    fill(root, "01");
    FaultyFiles files;
    files.only = "unlink";
    files.mode = FaultyFiles::Mode::from_then_on;
    files.error = EACCES;
    WarningLog log;
    Options options = capped(root, 2 * entry_bytes());
    options.file_system = &files;
    options.warn = log.sink();
    Store store(options);
    CHECK_FALSE(store.put(sample_key("2"), sample_entry("2")));
    CHECK(present(root) == "01");
    CHECK(log.count() == 1);
    CHECK(log.mentions("JITNEY_CACHE_MAX_BYTES"));
}
