// Who may stand behind a path: every directory above it, every link on the way, and its end.
#include "cache/trust.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kOther = 65534;

bool is_superuser() {
    if (::geteuid() == 0) return true;
    MESSAGE("skipped: only the superuser can give a file away");
    return false;
}

void make(const std::string& path, unsigned mode, uid_t owner = ::geteuid()) {
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    REQUIRE(::chown(path.c_str(), owner, static_cast<gid_t>(-1)) == 0);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

std::string why(const std::string& file) {
    return distrust_of_code(FileSystem::posix(), file);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// What a store there comes to: whether an entry is kept, and all that it says.
struct Used {
    bool kept = false;
    std::string said;
};
Used use(const Options& given) {
    WarningLog log;
    Options options = given;
    options.warn = log.sink();
    Used used;
    {
        Store store(options);
        const Got first = get(store);
        const Got second = get(store);
        used.kept = first.right && second.right && !second.computed;
    }
    for (const std::string& each : log.all())
        used.said += each + "\n";
    return used;
}

}  // namespace

TEST_CASE("a directory above the cache that others can write is not gone through") {
    for (const unsigned mode : {0777U, 0775U, 0702U, 02770U}) {
        TempDir temp;
        const std::string above = temp / "above";
        make(above, mode);
        for (const std::string& root : {above + "/cache", above + "/a/b/cache"}) {
            const Used used = use(options_for(root));
            CHECK_FALSE(used.kept);
            CHECK_MESSAGE(has(used.said, "it lies below " + above + ", which can be written"),
                          used.said);
            CHECK(has(used.said, "JITNEY_CACHE_TRUST name " + root));
            CHECK(fs::is_empty(above));
        }
        // What stands there already is not read either.
        REQUIRE(::chmod(above.c_str(), 0755) == 0);
        REQUIRE(Store(options_for(above + "/cache")).put(sample_key(), sample_entry()));
        REQUIRE(::chmod(above.c_str(), mode) == 0);
        for (const bool layer : {false, true}) {
            Options options = options_for(layer ? "" : above + "/cache");
            if (layer) options.readonly_roots = {above + "/cache"};
            Store store(options);
            CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
        }
    }
}

TEST_CASE("a sticky directory above the cache keeps what is one's own, and is gone through") {
    TempDir temp;
    make(temp / "above", 01777);
    CHECK(use(options_for(temp / "above/cache")).kept);
    if (!is_superuser()) return;
    // But who can write there can have made the next step.
    make(temp / "above/planted", 0755, kOther);
    const Used used = use(options_for(temp / "above/planted/cache"));
    CHECK_FALSE(used.kept);
    CHECK_MESSAGE(has(used.said, "planted, which belongs to user 65534, not to user 0"), used.said);
    CHECK(fs::is_empty(temp / "above/planted"));
}

TEST_CASE("the superuser makes nothing in the home of a user") {
    if (!is_superuser()) return;
    TempDir temp;
    make(temp / "home", 0755, kOther);
    CHECK_FALSE(use(options_for(temp / "home/.cache/jitney")).kept);
    CHECK(fs::is_empty(temp / "home"));
    // And the user's own processes do.
    CHECK(as_plain_user(temp.path(), [&] {
              return use(options_for(temp / "home/.cache/jitney")).kept ? 0 : 1;
          }) == 0);
    CHECK_FALSE(use(options_for(temp / "home/.cache/jitney")).kept);
}

TEST_CASE("a link on the way has to be the user's or the superuser's, and so what it leads to") {
    TempDir temp;
    make(temp / "real", 0700);
    make(temp / "open", 0777);
    const std::string link = temp / "link";
    REQUIRE(::symlink("real", link.c_str()) == 0);
    CHECK(use(options_for(link + "/cache")).kept);
    CHECK(exists(temp / "real/cache"));
    fs::remove(link);
    REQUIRE(::symlink("real/../open", link.c_str()) == 0);
    const Used open = use(options_for(link + "/cache"));
    CHECK_MESSAGE(has(open.said, "lies below " + (temp / "open")), open.said);
    fs::remove(link);
    for (const char* itself : {".", "./", "real/.."}) {
        REQUIRE(::symlink(itself, link.c_str()) == 0);
        CHECK(use(options_for(link + "/here")).kept);
        fs::remove_all(temp / "here");
        CHECK(walk_to(FileSystem::posix(), link).status.st_ino ==
              walk_to(FileSystem::posix(), temp.path()).status.st_ino);
        fs::remove(link);
    }
    REQUIRE(::symlink(link.c_str(), link.c_str()) == 0);
    CHECK(has(use(options_for(link + "/cache")).said, "Too many levels of symbolic links"));
    if (!is_superuser()) return;
    fs::remove(link);
    REQUIRE(::symlink((temp / "real").c_str(), link.c_str()) == 0);
    REQUIRE(::lchown(link.c_str(), kOther, kOther) == 0);
    const Used foreign = use(options_for(link + "/cache"));
    CHECK_FALSE(foreign.kept);
    CHECK_MESSAGE(has(foreign.said, link + ", a symbolic link of user 65534"), foreign.said);
}

TEST_CASE("a link that is swapped for a good one while it is looked at stays refused") {
    if (!is_superuser()) return;
    class Swapper : public QuickFiles {
      public:
        std::string link;
        std::string target;
        int opened = 0;
        int open(int directory, const char* name, int flags, mode_t mode) override {
            const int file = QuickFiles::open(directory, name, flags, mode);
            const bool is_it = fs::path(name).filename() == fs::path(link).filename();
            if (is_it && file >= 0 && ++opened == 1) {
                REQUIRE(::unlink(link.c_str()) == 0);
                REQUIRE(::symlink(target.c_str(), link.c_str()) == 0);
            }
            return file;
        }
    };
    TempDir temp;
    make(temp / "mine", 0700);
    REQUIRE(Store(options_for(temp / "mine")).put(sample_key(), sample_entry()));
    Swapper files;
    files.link = temp / "link";
    files.target = temp / "mine";
    REQUIRE(::symlink(files.target.c_str(), files.link.c_str()) == 0);
    REQUIRE(::lchown(files.link.c_str(), kOther, kOther) == 0);
    Options options = options_for(files.link);
    options.file_system = &files;
    const Used used = use(options);
    CHECK(files.opened >= 1);
    CHECK_FALSE(used.kept);
    CHECK_MESSAGE(has(used.said, "symbolic link of user 65534"), used.said);
}

TEST_CASE("a directory that is swapped after it was looked at is not followed") {
    class Swapper : public QuickFiles {
      public:
        std::string root;
        bool swapped = false;
        int open(int directory, const char* name, int flags, mode_t mode) override {
            const int file = QuickFiles::open(directory, name, flags, mode);
            if (file >= 0 && !swapped && fs::path(root).filename() == name) {
                swapped = true;  // looked at, and not yet opened to be read
                fs::rename(root, root + ".checked");
                make(root + ".evil", 0777);
                fs::create_directory_symlink(root + ".evil", root);
            }
            return file;
        }
    };
    TempDir temp;
    Swapper files;
    files.root = temp / "cache";
    make(files.root, 0700);
    Options options = options_for(files.root);
    options.file_system = &files;
    CHECK(use(options).kept);
    CHECK(files.swapped);
    CHECK(fs::is_empty(files.root + ".evil"));
    CHECK(names_under(files.root + ".checked").size() == 1);
}

TEST_CASE("a group whose one member is the user is nobody else") {
    class Alone : public QuickFiles {
      public:
        bool listed = false;
        bool is_alone_in_group(gid_t) override { return true; }
        bool has_access_list(int) override { return listed; }
    };
    TempDir temp;
    Alone files;
    make(temp / "above", 0775);
    Options options = options_for(temp / "above/cache");
    options.file_system = &files;
    CHECK(use(options).kept);
    REQUIRE(::chmod((temp / "above/cache").c_str(), 0770) == 0);
    CHECK(use(options).kept);
    // An access list shows as the group's permissions, and may name anybody.
    files.listed = true;
    CHECK_FALSE(use(options).kept);
    files.listed = false;
    REQUIRE(::chmod((temp / "above").c_str(), 0777) == 0);
    CHECK_FALSE(use(options).kept);
}

TEST_CASE("the system's own word on groups") {
    CHECK_FALSE((::geteuid() == 0 && FileSystem::posix().is_alone_in_group(0)));
    if (!is_superuser()) return;
    const passwd* const person = ::getpwnam("www-data");
    const ::group* const own = ::getgrnam("www-data");
    if (person == nullptr || own == nullptr || person->pw_gid != own->gr_gid ||
        own->gr_mem[0] != nullptr) {
        MESSAGE("skipped: this system has no user www-data with a group of its own");
        return;
    }
    const uid_t user = person->pw_uid;
    const gid_t group = own->gr_gid;
    TempDir temp;
    make(temp / "file-is-here", 0700);
    CHECK(in_child([&] {
              if (::setgid(group) != 0 || ::setuid(user) != 0) return 1;
              FileSystem& files = FileSystem::posix();
              if (!files.is_alone_in_group(group)) return 2;
              if (files.is_alone_in_group(group + 1)) return 3;
              return files.is_alone_in_group(0) ? 4 : 0;
          }) == 0);
}

TEST_CASE("code is trusted where nobody else can have put it or changed it") {
    TempDir temp;
    const std::string dir = temp / "lib";
    const std::string file = dir + "/libx.so";
    make(dir, 0755);
    write_file(file, "code");
    REQUIRE(::chmod(dir.c_str(), 0755) == 0);
    CHECK(why(file).empty());
    CHECK(has(why(dir + "/none.so"), "No such file"));
    CHECK(why(dir) == "is not a regular file");
    CHECK(why("lib/libx.so") == "is no absolute path");
    REQUIRE(::chmod(file.c_str(), 0664) == 0);
    CHECK(why(file) == "can be written by others (mode 0664)");
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    REQUIRE(::chmod(dir.c_str(), 0777) == 0);
    CHECK(why(file) == "lies below " + dir + ", which can be written by others (mode 0777)");
    // In /tmp anybody can give a name to what is another's.
    REQUIRE(::chmod(dir.c_str(), 01777) == 0);
    CHECK(why(file) == "lies in " + dir + ", where others can put files");
    REQUIRE(::chmod(dir.c_str(), 0755) == 0);
    REQUIRE(::chmod(temp.path().c_str(), 0777) == 0);
    CHECK(has(why(file), "lies below " + temp.path() + ", which can be written by others"));
    REQUIRE(::chmod(temp.path().c_str(), 01777) == 0);
    CHECK(why(file).empty());
    if (!is_superuser()) return;
    REQUIRE(::chown(file.c_str(), kOther, kOther) == 0);
    CHECK(why(file) == "belongs to user 65534, not to user 0");
    REQUIRE(::chown(file.c_str(), 0, 0) == 0);
    REQUIRE(::chown(dir.c_str(), kOther, kOther) == 0);
    CHECK(has(why(file), "lies below " + dir + ", which belongs to user 65534"));
    REQUIRE(::chown(dir.c_str(), 0, 0) == 0);
    // What is the superuser's is trusted by everybody, what is another user's is not.
    CHECK(in_child([&] { return ::setuid(kOther) == 0 && why(file).empty() ? 0 : 1; }) == 0);
    REQUIRE(::chown(file.c_str(), 33, 33) == 0);
    CHECK(in_child([&] {
              return ::setuid(kOther) == 0 && has(why(file), "belongs to user 33") ? 0 : 1;
          }) == 0);
}

TEST_CASE("a volume that a group can write is used where its name is trusted") {
    if (!is_superuser()) return;
    TempDir temp;
    const std::string volume = temp / "volume";
    make(volume, 0700);
    REQUIRE(::chown(volume.c_str(), 0, kOther) == 0);
    REQUIRE(::chmod(volume.c_str(), 02770) == 0);
    REQUIRE(::chmod(temp.path().c_str(), 0755) == 0);
    const auto as_member = [&](const std::string& root, const std::string& trusted) {
        return in_child([&] {
            if (::setgroups(0, nullptr) != 0 || ::setgid(kOther) != 0 || ::setuid(kOther) != 0) {
                return 2;
            }
            Options options = options_for(root);
            if (!trusted.empty()) options.trusted_roots = {trusted};
            return use(options).kept ? 1 : 0;
        });
    };
    CHECK(as_member(volume, "") == 0);
    CHECK(as_member(volume, volume) == 1);
    CHECK(as_member(volume + "/", "/" + volume + "/.") == 1);
    // A name trusts neither what is below it nor what is above.
    CHECK(as_member(volume + "/mine", volume) == 0);
    CHECK(as_member(volume, volume + "/mine") == 0);
    CHECK(as_member(volume, temp.path()) == 0);
    CHECK(as_member(volume, "/") == 0);
    CHECK(as_member(volume + "/mine", volume + "/mine") == 1);
    // What the volume's driver makes of owners and modes is the volume's affair.
    for (const auto& item : fs::recursive_directory_iterator(volume)) {
        REQUIRE(::chown(item.path().c_str(), kOther, kOther) == 0);
        REQUIRE(::chmod(item.path().c_str(), item.is_directory() ? 02770 : 0660) == 0);
    }
    Options options = options_for(volume);
    options.trusted_roots = {volume};
    Store store(options);
    CHECK(store.find(sample_key(), kCompiler).next().has_value());
    CHECK(store.stat().layers.at(0).trusted);
    CHECK(store.verify().bad.empty());
}

TEST_CASE("a volume that takes the superuser for nobody is used where its name is trusted") {
    if (!is_superuser()) return;
    class Squashed : public QuickFiles {
      public:
        int open(int directory, const char* name, int flags, mode_t mode) override {
            const int file = QuickFiles::open(directory, name, flags, mode);
            if (file >= 0 && (flags & O_CREAT) != 0) REQUIRE(::fchown(file, kOther, kOther) == 0);
            return file;
        }
        int mkdir(int directory, const char* name, mode_t mode) override {
            const int made = QuickFiles::mkdir(directory, name, mode);
            if (made == 0) REQUIRE(::fchownat(directory, name, kOther, kOther, 0) == 0);
            return made;
        }
    };
    TempDir temp;
    make(temp / "volume", 0755, kOther);
    Squashed files;
    Options options = options_for(temp / "volume/jitney");
    options.file_system = &files;
    const Used refused = use(options);
    CHECK_FALSE(refused.kept);
    CHECK_MESSAGE(has(refused.said, "belongs to user 65534"), refused.said);
    options.trusted_roots = {temp / "volume/jitney"};
    const Used used = use(options);
    CHECK(used.kept);
    CHECK_MESSAGE(used.said.empty(), used.said);
    CHECK(use(options).kept);
}

TEST_CASE("links and second names stay refused in a directory that is trusted") {
    TempDir temp;
    const std::string root = temp / "cache";
    make(root, 0777);
    Options options = options_for(root);
    options.trusted_roots = {root};
    REQUIRE(Store(options).put(sample_key(), sample_entry()));
    const std::string path = path_of(root, sample_key());
    fs::rename(path, temp / "elsewhere");
    fs::create_symlink(temp / "elsewhere", path);
    Store store(options);
    CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
    fs::remove(path);
    fs::create_hard_link(temp / "elsewhere", path);
    CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
}

TEST_CASE("whether a directory can be written is known by writing, which leaves nothing") {
    TempDir temp;
    const auto why_unwritable = [](const Options& options) {
        return Store(options).why_unwritable();
    };
    CHECK(why_unwritable(options_for(temp / "a/cache")).empty());
    CHECK(fs::is_empty(temp.path()));
    make(temp / "cache", 0700);
    CHECK(why_unwritable(options_for(temp / "cache")).empty());
    CHECK(fs::is_empty(temp / "cache"));
    CHECK(has(why_unwritable(options_for("/proc/jitney")), "it can't be created in /proc: "));
    write_file(temp / "file", "text");
    CHECK(has(why_unwritable(options_for(temp / "file/cache")), "Not a directory"));
    // Who may write a file in its place does not matter.
    REQUIRE(::chmod((temp / "file").c_str(), 0666) == 0);
    CHECK(has(why_unwritable(options_for(temp / "file")), "Not a directory"));
    CHECK(has(why_unwritable(options_for("/dev/null")), "Not a directory"));
    CHECK(has(why_unwritable(options_for("")), "no directory is named"));
    REQUIRE(::symlink((temp / "nothing").c_str(), (temp / "link").c_str()) == 0);
    CHECK(has(why_unwritable(options_for(temp / "link")), "symbolic link to what does not exist"));
    REQUIRE(::chmod((temp / "cache").c_str(), 0777) == 0);
    CHECK(has(why_unwritable(options_for(temp / "cache")), "can be written by others"));
    REQUIRE(::chmod((temp / "cache").c_str(), 0700) == 0);
    FaultyFiles full;
    full.mode = FaultyFiles::Mode::from_then_on;
    full.only = "write";
    full.error = ENOSPC;
    Options options = options_for(temp / "cache");
    options.file_system = &full;
    CHECK(has(why_unwritable(options), "No space left on device"));
    CHECK(fs::is_empty(temp / "cache"));
    options = options_for(temp / "cache");
    options.max_bytes = 0;
    CHECK(has(why_unwritable(options), "JITNEY_CACHE_MAX_BYTES is 0"));
    REQUIRE(::chmod((temp / "cache").c_str(), 0500) == 0);
    CHECK(as_plain_user(temp.path(), [&] {
              return has(why_unwritable(options_for(temp / "cache")), "Permission denied") ? 0 : 1;
          }) == 0);
    REQUIRE(::chmod((temp / "cache").c_str(), 0700) == 0);
}
