// Directories and files that someone else could have made: never followed, never trusted, never
// changed, and never waited for.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
namespace fs = std::filesystem;

namespace {

// Computes right, keeps nothing, and says once why.
void check_unused(const Options& given, std::string_view why) {
    WarningLog log;
    Options options = given;
    options.warn = log.sink();
    Store store(options);
    CHECK(get(store).computed);
    CHECK(get(store).right);
    CHECK(get(store, "64").computed);
    CHECK(log.count() == 1);
    CHECK_MESSAGE(log.mentions(why), (log.count() == 0 ? std::string() : log.all()[0]));
    CHECK(log.mentions(given.private_root));
    REQUIRE(store.stat().layers.size() == 1);
    CHECK_FALSE(store.stat().layers[0].exists);
    CHECK_FALSE(store.stat().layers[0].refusal.empty());
}

std::string shard_of(const std::string& root) {
    return root + "/" + sample_key().digest.hex().substr(0, 2);
}

// As if everything on disk belonged to another user than this process.
class ForeignFiles : public QuickFiles {
  public:
    uid_t user() override { return ::geteuid() + 1; }
};

}  // namespace

TEST_CASE("a directory that others can write is not used and not changed") {
    for (const unsigned mode : {0770U, 0702U, 0777U, 01777U}) {
        TempDir temp;
        const std::string root = temp / "cache";
        REQUIRE(::mkdir(root.c_str(), 0700) == 0);
        REQUIRE(::chmod(root.c_str(), mode) == 0);
        check_unused(options_for(root), "can be written by others");
        CHECK(mode_of(root) == mode);
        CHECK(names_under(root).empty());
    }
}

TEST_CASE("a directory that others can only read is used") {
    TempDir temp;
    const std::string root = temp / "cache";
    REQUIRE(::mkdir(root.c_str(), 0700) == 0);
    REQUIRE(::chmod(root.c_str(), 0755) == 0);
    Store store(options_for(root));
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
    CHECK(mode_of(root) == 0755);
}

TEST_CASE("someone else's directory is not used") {
    TempDir temp;
    const std::string root = temp / "cache";
    REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
    ForeignFiles files;
    Options options = options_for(root);
    options.file_system = &files;
    check_unused(options, "belongs to user");
    CHECK(names_under(root).size() == 1);
    if (::geteuid() == 0) {
        REQUIRE(::chown(root.c_str(), 65534, 65534) == 0);
        check_unused(options_for(root), "belongs to user 65534");
    }
}

TEST_CASE("someone else's shard and entry are not used") {
    if (::geteuid() != 0) {
        MESSAGE("skipped: only the superuser can give a file away");
        return;
    }
    for (const bool whole_shard : {true, false}) {
        TempDir temp;
        const std::string root = temp / "cache";
        REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
        const std::string path = path_of(root, sample_key());
        REQUIRE(::chown(whole_shard ? shard_of(root).c_str() : path.c_str(), 65534, 65534) == 0);
        Store store(options_for(root));
        CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
        CHECK(get(store).computed);
        CHECK(get(store).computed == whole_shard);  // an entry is replaced, a shard is not
    }
}

TEST_CASE("a directory of entries that can't be opened is left out, and one warning says so") {
    for (const bool layer : {true, false}) {
        TempDir temp;
        const std::string root = temp / "cache";
        REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
        REQUIRE(::chmod(shard_of(root).c_str(), 0) == 0);
        CHECK(as_plain_user(temp.path(), [&] {
                  WarningLog log;
                  Options options = options_for(layer ? "" : root);
                  if (layer) options.readonly_roots = {root};
                  options.warn = log.sink();
                  Store store(options);
                  for (int i = 0; i < 3; ++i) {
                      if (store.find(sample_key(), kCompiler).next()) return 1;
                  }
                  if (log.count() != 1) return 2;
                  return log.mentions(shard_of(root) + " is not used: it can't be opened: Perm")
                             ? 0
                             : 3;
              }) == 0);
        REQUIRE(::chmod(shard_of(root).c_str(), 0700) == 0);
    }
}

TEST_CASE("read-only layers may belong to the superuser or to the user, and to nobody else") {
    TempDir temp;
    const std::string root = temp / "shared";
    REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
    Options options = options_for("");
    options.readonly_roots = {root};
    CHECK_FALSE(get(*std::make_unique<Store>(options)).computed);

    WarningLog log;
    options.warn = log.sink();
    REQUIRE(::chmod(root.c_str(), 0775) == 0);
    {
        Store store(options);
        CHECK(get(store).computed);
        CHECK(get(store, "64").computed);
    }
    CHECK(log.count() == 1);
    CHECK(log.mentions("can be written by others"));
    REQUIRE(::chmod(root.c_str(), 0755) == 0);
    REQUIRE(::chmod(path_of(root, sample_key()).c_str(), 0666) == 0);
    CHECK(get(*std::make_unique<Store>(options)).computed);
    REQUIRE(::chmod(path_of(root, sample_key()).c_str(), 0644) == 0);
    CHECK_FALSE(get(*std::make_unique<Store>(options)).computed);

    // Seen by another user, it is the superuser's (used) or a third one's (not used).
    ForeignFiles files;
    options.file_system = &files;
    CHECK(get(*std::make_unique<Store>(options)).computed == (::geteuid() != 0));
    if (::geteuid() == 0) {
        REQUIRE(::chown(root.c_str(), 65534, 65534) == 0);
        options.file_system = options_for("").file_system;
        CHECK(get(*std::make_unique<Store>(options)).computed);
    }
}

TEST_CASE("a symbolic link at the root is as good as what it points to") {
    TempDir temp;
    const std::string target = temp / "target";
    const std::string root = temp / "link";
    REQUIRE(::mkdir(target.c_str(), 0700) == 0);
    REQUIRE(::symlink(target.c_str(), root.c_str()) == 0);
    {
        Store store(options_for(root + "/"));
        CHECK(get(store).computed);
        CHECK_FALSE(get(store).computed);
    }
    REQUIRE(::chmod(target.c_str(), 0777) == 0);
    check_unused(options_for(root), "can be written by others");
    if (::geteuid() == 0) {
        REQUIRE(::chmod(target.c_str(), 0700) == 0);
        REQUIRE(::lchown(root.c_str(), 65534, 65534) == 0);
        check_unused(options_for(root), "symbolic link of user 65534");
    }
}

TEST_CASE("a dangling link at the root creates nothing behind it") {
    TempDir temp;
    REQUIRE(::symlink((temp / "target").c_str(), (temp / "link").c_str()) == 0);
    WarningLog log;
    Options options = options_for(temp / "link");
    options.warn = log.sink();
    Store store(options);
    CHECK(get(store).computed);
    CHECK(get(store).computed);
    CHECK_FALSE(exists(temp / "target"));
    CHECK(log.count() == 1);
}

TEST_CASE("links, pipes and directories where a shard should be are not followed") {
    for (const char* what : {"link", "pipe", "file"}) {
        TempDir temp;
        const std::string root = temp / "cache";
        const std::string target = temp / "target";
        REQUIRE(::mkdir(root.c_str(), 0700) == 0);
        REQUIRE(::mkdir(target.c_str(), 0700) == 0);
        if (std::string(what) == "link") {
            REQUIRE(::symlink(target.c_str(), shard_of(root).c_str()) == 0);
        } else if (std::string(what) == "pipe") {
            REQUIRE(::mkfifo(shard_of(root).c_str(), 0600) == 0);
        } else {
            write_file(shard_of(root), "text");
        }
        WarningLog log;
        Options options = options_for(root);
        options.warn = log.sink();
        Store store(options);
        CHECK(get(store).computed);
        CHECK(get(store).computed);
        CHECK(names_under(target).empty());
        CHECK(log.count() == 1);
        CHECK(log.mentions(shard_of(root) + " is not used: it is a file, a pipe or a link"));
        // Its keys compile at every start, so whoever looks hears of it.
        Gaps gaps;
        CHECK(store.list(&gaps).empty());
        const Verification verification = store.verify();
        const Removal removal = store.clear();
        const Statistics statistics = store.stat();
        for (const std::vector<BadEntry>& named :
             {gaps.directories, verification.gaps.directories, removal.gaps.directories,
              statistics.layers[0].refused}) {
            REQUIRE(named.size() == 1);
            CHECK(named[0].path == shard_of(root));
            CHECK(named[0].reason.find("remove it") != std::string::npos);
        }
        CHECK(exists(shard_of(root)));
    }
}

TEST_CASE("a link, hard link, pipe or directory in an entry's place is a miss") {
    for (const std::string what : {"link", "hard link", "pipe", "directory"}) {
        INFO(what);
        TempDir temp;
        const std::string root = temp / "cache";
        const std::string target = temp / "target";
        const std::string path = path_of(root, sample_key());
        const std::string good = encode(sample_entry());
        write_file(target, good);
        fs::create_directories(fs::path(path).parent_path());
        REQUIRE(::chmod(root.c_str(), 0700) == 0);
        REQUIRE(::chmod(shard_of(root).c_str(), 0700) == 0);
        if (what == "link") REQUIRE(::symlink(target.c_str(), path.c_str()) == 0);
        if (what == "hard link") REQUIRE(::link(target.c_str(), path.c_str()) == 0);
        if (what == "pipe") REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        if (what == "directory") REQUIRE(::mkdir(path.c_str(), 0700) == 0);
        WarningLog log;
        Options options = options_for(root);
        options.warn = log.sink();
        Store store(options);
        CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
        CHECK(store.verify().bad.size() == 1);
        CHECK(get(store).computed);
        const Got second = get(store);
        CHECK(second.right);
        CHECK_FALSE(second.computed);  // each is replaced
        CHECK(read_file(target) == good);
        CHECK(log.count() >= 1);
        CHECK(log.count() <= 2);
    }
}

TEST_CASE("a directory in an entry's place goes if it is empty, and is named if it is not") {
    for (const bool empty : {true, false}) {
        for (const bool counted : {true, false}) {  // whether the cache is swept on the way
            TempDir temp;
            const std::string root = temp / "cache";
            const std::string path = path_of(root, sample_key());
            if (!counted)
                REQUIRE(Store(options_for(root)).put(sample_key("64"), sample_entry("64")));
            fs::create_directories(path);
            if (!empty) write_file(path + "/a file of somebody's", "text");
            for (const std::string& made : {root, shard_of(root), path})
                REQUIRE(::chmod(made.c_str(), 0700) == 0);
            WarningLog log;
            Options options = options_for(root);
            options.warn = log.sink();
            Store store(options);
            const Verification verification = store.verify();
            CHECK(verification.bad.size() == 1);
            CHECK(verification.bad_that_stay == (empty ? 0 : 1));
            CHECK(get(store).computed);
            CHECK(get(store).computed == !empty);
            CHECK(exists(path + "/a file of somebody's") == !empty);
            if (empty) continue;
            CHECK(log.mentions(sample_key().digest.hex()));
            CHECK(log.mentions("can't be removed"));
            const Removal removal = store.clear();
            REQUIRE(removal.stuck.size() == 1);
            CHECK(removal.stuck[0].path == path);
        }
    }
}

TEST_CASE("a link in a temporary file's place is refused, and another name taken") {
    // Whoever could guess the name plants a link there just before it is created.
    class Planter : public QuickFiles {
      public:
        std::string target;
        int planted = 0;
        int open(int directory, const char* name, int flags, mode_t mode) override {
            if ((flags & O_EXCL) != 0 && planted < 2) {
                ++planted;
                REQUIRE(::symlinkat(target.c_str(), directory, name) == 0);
            }
            return QuickFiles::open(directory, name, flags, mode);
        }
    };
    TempDir temp;
    Planter files;
    files.target = temp / "target";
    Options options = options_for(temp / "cache");
    options.file_system = &files;
    Store store(options);
    CHECK(get(store).computed);
    CHECK(files.planted == 2);
    CHECK_FALSE(exists(files.target));
    CHECK_FALSE(get(store).computed);
}

TEST_CASE("a link, pipe or another's file in a lock's place is left alone, and nothing waits") {
    for (const std::string what : {"link", "pipe", "open to others"}) {
        TempDir temp;
        const std::string root = temp / "cache";
        const std::string target = temp / "target";
        fs::create_directories(shard_of(root));
        REQUIRE(::chmod(root.c_str(), 0700) == 0);
        REQUIRE(::chmod(shard_of(root).c_str(), 0700) == 0);
        const std::string lock = shard_of(root) + "/.lock-" + sample_key().digest.hex();
        if (what == "link") REQUIRE(::symlink(target.c_str(), lock.c_str()) == 0);
        if (what == "pipe") REQUIRE(::mkfifo(lock.c_str(), 0600) == 0);
        if (what == "open to others") {
            write_file(lock, "");
            REQUIRE(::chmod(lock.c_str(), 0666) == 0);
        }
        Store store(options_for(root));
        CHECK(get(store).computed);
        CHECK_FALSE(get(store).computed);
        CHECK_FALSE(exists(target));
        CHECK(exists(lock) == (what != "open to others"));  // a file that nobody holds goes
    }
}

TEST_CASE("a root swapped after it was checked is not followed") {
    class Swapper : public QuickFiles {
      public:
        std::string root;
        bool swapped = false;
        int open(int directory, const char* name, int flags, mode_t mode) override {
            if (is_shard(name) && !swapped) {  // the root is held
                swapped = true;
                REQUIRE(::rename(root.c_str(), (root + ".checked").c_str()) == 0);
                REQUIRE(::mkdir((root + ".evil").c_str(), 0777) == 0);
                REQUIRE(::symlink((root + ".evil").c_str(), root.c_str()) == 0);
            }
            return QuickFiles::open(directory, name, flags, mode);
        }
    };
    TempDir temp;
    Swapper files;
    files.root = temp / "cache";
    REQUIRE(::mkdir(files.root.c_str(), 0700) == 0);
    Options options = options_for(files.root);
    options.file_system = &files;
    Store store(options);
    CHECK(get(store).computed);
    CHECK(files.swapped);
    CHECK(names_under(files.root + ".evil").empty());
    CHECK(names_under(files.root + ".checked").size() == 1);
    CHECK_FALSE(get(store).computed);
}

TEST_CASE("the umask opens nothing and closes nothing") {
    for (const mode_t mask : {mode_t{0}, mode_t{077}, mode_t{022}}) {
        TempDir temp;
        const std::string root = temp / "a/cache";
        const mode_t before = ::umask(mask);
        {
            Store store(options_for(root));
            CHECK(get(store).computed);
            CHECK_FALSE(get(store).computed);
        }
        ::umask(before);
        CHECK(mode_of(temp / "a") == 0700);
        CHECK(mode_of(root) == 0700);
        CHECK(mode_of(shard_of(root)) == 0700);
        CHECK(mode_of(path_of(root, sample_key())) == 0600);
    }
}

TEST_CASE("an entry that may not be read is a miss and stays") {
    TempDir temp;
    const std::string root = temp / "cache";
    REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
    const std::string path = path_of(root, sample_key());
    REQUIRE(::chmod(path.c_str(), 0) == 0);
    CHECK(as_plain_user(temp.path(), [&] {
              WarningLog log;
              Options options = options_for(root);
              options.warn = log.sink();
              Store store(options);
              if (store.find(sample_key(), kCompiler).next()) return 1;
              if (!exists(path)) return 2;
              return log.count() == 1 && log.mentions("Permission denied") ? 0 : 3;
          }) == 0);
}

TEST_CASE("a sparse file of a terabyte is not read") {
    TempDir temp;
    const std::string root = temp / "cache";
    write_file(path_of(root, sample_key()), encode(sample_entry()));
    REQUIRE(::chmod(root.c_str(), 0700) == 0);
    REQUIRE(::truncate(path_of(root, sample_key()).c_str(), off_t{1} << 40) == 0);
    Store store(options_for(root));
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
}
