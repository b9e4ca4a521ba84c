// A process is killed at any moment: the next one succeeds at once, and what was left is cleared.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "cache/publish.hpp"
#include "jitney/error.hpp"
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

            // What the killed process left is told by its locks, and cleared at once.
            const std::size_t left = names_under(root, ".tmp-").size();
            temps_seen += left;
            REQUIRE(store.stat().abandoned_temps == left);
            REQUIRE(store.prune(UINT64_MAX).removed_temps == left);
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

TEST_CASE("a forked child does not keep what its parent was doing from others") {
    TempDir temp;
    const std::string root = temp / "cache";
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const int parent = start_child([&] {
        Store store(options_for(root));
        store.get_or_compute(sample_key(), kCompiler, [&] {
            // Beside the key's lock, a file being written.
            QuickFiles files;
            const Temporary temporary = Temporary::create(
                files, AT_FDCWD, root + "/" + sample_key().digest.hex().substr(0, 2) + "/",
                kTempPrefix, 0600);
            if (::fork() == 0) {  // lives on, and does nothing
                ::alarm(60);
                // It says so itself: until it runs, it holds what its parent had open.
                const pid_t own = ::getpid();
                if (::write(ready[1], &own, sizeof own) != sizeof own) std::abort();
                while (true)
                    ::pause();
            }
            ::raise(SIGKILL);
            return sample_entry();
        });
        return 0;
    });
    pid_t child = 0;
    REQUIRE(::read(ready[0], &child, sizeof child) == sizeof child);
    REQUIRE(wait_child(parent) == 128 + SIGKILL);
    REQUIRE(::kill(child, 0) == 0);
    CHECK(in_child([&] {
              Options options = options_for(root);
              options.lock_timeout = std::chrono::hours(1);  // the alarm comes first
              Store store(options);
              if (store.stat().abandoned_temps != 1) return 1;
              if (!get(store).computed) return 2;
              return store.clear().temps == 0 ? 0 : 3;
          }) == 0);
    REQUIRE(::kill(child, 0) == 0);
    ::kill(child, SIGKILL);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_CASE("a child that was forked amid a write leaves its parent's file alone") {
    TempDir temp;
    QuickFiles files;
    AtomicFile file(files, AT_FDCWD, temp / "", 0600);
    REQUIRE(file.write("half"));
    CHECK(in_child([&] {
              file.~AtomicFile();
              return 0;
          }) == 0);
    REQUIRE(file.write("whole"));
    REQUIRE(file.commit(temp / "file"));
    CHECK(read_file(temp / "file") == "halfwhole");
}

TEST_CASE("a limit for files costs a compile, and not the process") {
    TempDir temp;
    const std::string root = temp / "cache";
    CHECK(in_child([&] {
              const rlimit limit{300, 300};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              WarningLog log;
              Options options = options_for(root);
              options.warn = log.sink();
              Store store(options);
              if (!get(store).right || !get(store).right) return 2;
              if (!log.mentions("File too large")) return 3;
              try {
                  store.export_bundle(temp / "bundle", {});
              } catch (const jitney::Error&) {
                  return 4;
              }
              // The signal is the process's as before: none is pending, none is held back.
              sigset_t set;
              ::sigpending(&set);
              if (::sigismember(&set, SIGXFSZ) != 0) return 5;
              ::pthread_sigmask(SIG_SETMASK, nullptr, &set);
              return ::sigismember(&set, SIGXFSZ) == 0 ? 0 : 6;
          }) == 0);
    CHECK(names_under(root, ".tmp-").empty());
}
