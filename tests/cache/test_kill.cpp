// A process is killed at any moment: the next one succeeds at once, and what was left is cleared.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
using Mode = FaultyFiles::Mode;

namespace {

// Fills the cache so that the next entry evicts, and looks one up.
int work(const std::string& root, FaultyFiles& files) {
    Options options = options_for(root);
    options.file_system = &files;
    options.max_bytes = 4000;
    Store store(options);
    return get(store, "new").right && get(store, "new").right ? 0 : 1;
}

void prepare(const std::string& root) {
    Store store(options_for(root));
    for (const char* variant : {"1", "2", "3"})
        REQUIRE(get(store, variant).computed);
    for (const char* variant : {"1", "2", "3"})
        set_age(path_of(root, sample_key(variant)), 8000);
}

}  // namespace

TEST_CASE("SIGKILL before or after any call") {
    long calls = 0;
    {
        TempDir temp;
        prepare(temp / "cache");
        FaultyFiles files;
        files.half_writes = true;
        REQUIRE(work(temp / "cache", files) == 0);
        calls = static_cast<long>(files.calls.size());
        const auto has = [&](const char* name) {
            return std::find(files.calls.begin(), files.calls.end(), name) != files.calls.end();
        };
        for (const char* name : {"write", "fsync", "rename", "unlink", "flock"})
            CHECK(has(name));
    }
    REQUIRE(calls > 20);
    std::size_t temps_seen = 0;
    for (long at = 0; at < calls; ++at) {
        for (const Mode mode : {Mode::kill_before, Mode::kill_after}) {
            INFO("call " << at << ", mode " << static_cast<int>(mode));
            TempDir temp(Place::memory);
            const std::string root = temp / "cache";
            prepare(root);
            REQUIRE(in_child([&] {
                        FaultyFiles files;
                        files.half_writes = true;
                        files.mode = mode;
                        files.at = at;
                        return work(root, files);
                    }) == 128 + SIGKILL);
            Store store(options_for(root));
            REQUIRE(store.verify().bad.empty());
            REQUIRE(in_child([&] {
                        Options options = options_for(root);
                        options.lock_timeout = std::chrono::hours(1);  // the alarm comes first
                        Store next(options);
                        if (!get(next, "new").right) return 1;
                        return get(next, "new").computed ? 2 : 0;
                    }) == 0);
            REQUIRE(store.verify().bad.empty());

            // What the killed process left is young, and stays; an hour later it is cleared.
            const std::vector<std::string> young = names_under(root, ".tmp-");
            temps_seen += young.size();
            store.prune(UINT64_MAX);
            REQUIRE(names_under(root, ".tmp-") == young);
            for (const auto& item : std::filesystem::recursive_directory_iterator(root)) {
                const std::string name = item.path().filename().string();
                if (name.starts_with(".")) set_age(item.path().string(), 4000);
            }
            REQUIRE(get(*std::make_unique<Store>(options_for(root)), "newer").computed);
            REQUIRE(names_under(root, ".").empty());
        }
    }
    CHECK(temps_seen > 0);
}

TEST_CASE("SIGKILL in the middle of a compile") {
    TempDir temp;
    const std::string root = temp / "cache";
    REQUIRE(in_child([&] {
                Store store(options_for(root));
                store.get_or_compute(sample_key(), kCompiler, []() -> Entry {
                    ::raise(SIGKILL);
                    return {};
                });
                return 0;
            }) == 128 + SIGKILL);
    CHECK(names_under(root, ".lock-").size() == 1);
    Store store(options_for(root));
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
    CHECK(names_under(root, ".lock-").empty());
}
