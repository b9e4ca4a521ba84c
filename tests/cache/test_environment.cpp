// Where the cache is said to be, and what happens where that is no place for it.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

#include "tests/cache/support.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
namespace fs = std::filesystem;

namespace {

using Variables = std::vector<std::pair<const char*, const char*>>;

// Options::from_environment() with these variables and no others of those that it reads.
struct FromEnvironment {
    std::string private_root;
    std::vector<std::string> readonly_roots;
    std::uint64_t max_bytes = 0;
    long timeout = 0;
    std::size_t warnings = 0;
    std::vector<std::string> trusted_roots;
    std::vector<std::string> said;
};

FromEnvironment from_environment(const Variables& variables) {
    constexpr const char* kNames[] = {
        "JITNEY_CACHE_DIR",   "XDG_CACHE_HOME",         "HOME",
        "JITNEY_CACHE_TRUST", "JITNEY_CACHE_MAX_BYTES", "JITNEY_CACHE_LOCK_TIMEOUT_MS"};
    std::vector<std::pair<const char*, std::optional<std::string>>> before;
    for (const char* name : kNames) {
        const char* const value = std::getenv(name);
        before.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
        ::unsetenv(name);
    }
    for (const auto& [name, value] : variables)
        ::setenv(name, value, 1);
    WarningLog log;
    const Options options = Options::from_environment(log.sink());
    for (const auto& [name, value] : before) {
        if (value) {
            ::setenv(name, value->c_str(), 1);
        } else {
            ::unsetenv(name);
        }
    }
    return {options.private_root,
            options.readonly_roots,
            options.max_bytes,
            static_cast<long>(options.lock_timeout.count()),
            log.count(),
            options.trusted_roots,
            log.all()};
}

// Computes right each time, with `warnings` warnings.
void check_works_uncached(const std::string& root, std::size_t warnings) {
    WarningLog log;
    Options options = options_for(root);
    options.warn = log.sink();
    Store store(options);
    for (int i = 0; i < 2; ++i) {
        CHECK(get(store).right);
        CHECK(get(store, "64").computed);
    }
    CHECK(log.count() == warnings);
    CHECK(store.list().empty());
    CHECK(store.verify().bad.empty());
    CHECK(store.clear().entries == 0);
}

}  // namespace

TEST_CASE("a directory that is named twice counts once") {
    TempDir temp;
    const std::string d = temp / "d";
    REQUIRE(::mkdir(d.c_str(), 0700) == 0);
    REQUIRE(::symlink(d.c_str(), (temp / "link").c_str()) == 0);
    for (const std::string& list : {d + ":" + d, d + ":" + d + "/", d + "::" + (temp / "link")}) {
        const auto once = from_environment({{"JITNEY_CACHE_DIR", list.c_str()}});
        CHECK(once.private_root == d);
        CHECK_MESSAGE(once.readonly_roots.empty(), list);
    }
    const auto layers = from_environment({{"JITNEY_CACHE_DIR", ":/no/a:/no/b:/no/./a/:/no/c"}});
    CHECK(layers.private_root.empty());
    CHECK(layers.readonly_roots == std::vector<std::string>{"/no/a", "/no/b", "/no/c"});
}

TEST_CASE("the directory comes from the first variable that names one") {
    CHECK(from_environment({{"HOME", "/h"}}).private_root == "/h/.cache/jitney");
    CHECK(from_environment({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).private_root == "/x/jitney");
    CHECK(from_environment({{"HOME", "/h"}, {"XDG_CACHE_HOME", "relative"}}).private_root ==
          "/h/.cache/jitney");
    CHECK(from_environment({{"HOME", "/h"}, {"XDG_CACHE_HOME", ""}}).private_root ==
          "/h/.cache/jitney");
    const auto one = from_environment({{"HOME", "/h"}, {"JITNEY_CACHE_DIR", "/c"}});
    CHECK(one.private_root == "/c");
    CHECK(one.readonly_roots.empty());
    CHECK(one.warnings == 0);
    const auto several = from_environment({{"JITNEY_CACHE_DIR", "/c:/r1::/r2:"}});
    CHECK(several.private_root == "/c");
    CHECK(several.readonly_roots == std::vector<std::string>{"/r1", "/r2"});
    const auto readonly = from_environment({{"JITNEY_CACHE_DIR", ":/r1"}});
    CHECK(readonly.private_root.empty());
    CHECK(readonly.readonly_roots == std::vector<std::string>{"/r1"});
    CHECK(from_environment({{"HOME", "/h"}, {"JITNEY_CACHE_DIR", ""}}).private_root ==
          "/h/.cache/jitney");
}

TEST_CASE("a value that names no directory is refused, and one sentence says why") {
    const std::vector<std::pair<std::string, std::string>> bad = {
        {"~/x", "has a ~"},          {"~someone/x", "has a ~"},     {"/data/~/x", "has a ~"},
        {"$HOME/x", "has a $"},      {"/data/$USER/x", "has a $"},  {"${HOME}/x", "has a $"},
        {"here", "not an absolute"}, {"./here", "not an absolute"}, {"../here", "not an absolute"}};
    for (const auto& [value, reason] : bad) {
        INFO(value);
        const auto said_once = [reason = reason, value = value](const FromEnvironment& found,
                                                                const std::string& variable) {
            REQUIRE(found.said.size() == 1);
            const std::string& text = found.said.front();
            CHECK_MESSAGE(text.find(variable + " names \"" + value + "\"") == 0, text);
            CHECK_MESSAGE(text.find(reason) != std::string::npos, text);
        };
        const auto alone = from_environment({{"JITNEY_CACHE_DIR", value.c_str()}, {"HOME", "/h"}});
        CHECK(alone.private_root.empty());
        said_once(alone, "JITNEY_CACHE_DIR");
        const std::string list = "/a:" + value + ":/b";
        const auto layer = from_environment({{"JITNEY_CACHE_DIR", list.c_str()}});
        CHECK(layer.private_root == "/a");
        CHECK(layer.readonly_roots == std::vector<std::string>{"/b"});
        said_once(layer, "JITNEY_CACHE_DIR");
        // What comes after the private directory is no private one.
        const auto first = from_environment({{"JITNEY_CACHE_DIR", (value + ":/b").c_str()}});
        CHECK(first.private_root.empty());
        CHECK(first.readonly_roots == std::vector<std::string>{"/b"});
        const auto trust =
            from_environment({{"HOME", "/h"}, {"JITNEY_CACHE_TRUST", (value + ":/b").c_str()}});
        CHECK(trust.trusted_roots == std::vector<std::string>{"/b"});
        said_once(trust, "JITNEY_CACHE_TRUST");
    }
    const auto xdg = from_environment({{"XDG_CACHE_HOME", "/data/$USER"}, {"HOME", "/h"}});
    CHECK(xdg.private_root == "/h/.cache/jitney");
    CHECK(xdg.warnings == 1);
    const auto home = from_environment({{"HOME", "/$USER"}});
    CHECK(home.private_root.empty());
    CHECK(home.warnings == 2);
}

TEST_CASE("trust is given to names, and to no pattern of them") {
    const auto trusted = [](const char* value) {
        return from_environment({{"HOME", "/h"}, {"JITNEY_CACHE_TRUST", value}});
    };
    CHECK(trusted("").trusted_roots.empty());
    CHECK(trusted("/v").trusted_roots == std::vector<std::string>{"/v"});
    CHECK(trusted("/v::/w/:").trusted_roots == std::vector<std::string>{"/v", "/w/"});
    CHECK(trusted("/v:/w").warnings == 0);
    for (const char* pattern : {"*", "/*", "/v/*", "/v*"}) {
        CHECK_MESSAGE(trusted(pattern).trusted_roots.empty(), pattern);
        CHECK_MESSAGE(trusted(pattern).warnings == 1, pattern);
    }
    Options options;
    options.trusted_roots = {"/v/w", "/"};
    for (const char* root : {"/v/w", "/v/w/", "//v/./w", "/"})
        CHECK_MESSAGE(options.trusts(root), root);
    for (const char* root : {"/v", "/v/w/x", "/v/W", "/v/x/../w", "/v/ww", ""})
        CHECK_MESSAGE(!options.trusts(root), root);
}

TEST_CASE("without any of them there is no cache on disk, and one warning") {
    for (const Variables& variables :
         {Variables{}, Variables{{"HOME", ""}}, Variables{{"HOME", "relative"}}}) {
        const auto options = from_environment(variables);
        CHECK(options.private_root.empty());
        CHECK(options.readonly_roots.empty());
        CHECK(options.warnings == 1);
    }
    check_works_uncached("", 0);
}

TEST_CASE("sizes and times are read, and what is neither is reported") {
    const auto bytes = [](const char* text) {
        return from_environment({{"HOME", "/h"}, {"JITNEY_CACHE_MAX_BYTES", text}});
    };
    constexpr std::uint64_t kDefault = std::uint64_t{1} << 30;
    CHECK(bytes("0").max_bytes == 0);
    CHECK(bytes("12345").max_bytes == 12345);
    CHECK(bytes("64K").max_bytes == 65536);
    CHECK(bytes("2m").max_bytes == 2097152);
    CHECK(bytes("3G").max_bytes == 3 * kDefault);
    CHECK(bytes("3G").warnings == 0);
    CHECK(bytes("").max_bytes == kDefault);
    CHECK(bytes("").warnings == 0);
    for (const char* bad : {"x", "K", "-1", "+1", "1.5G", "1T", " 1", "1 ", "0x10", "1GB",
                            "99999999999999999999", "99999999999999999G"}) {
        CHECK_MESSAGE(bytes(bad).max_bytes == kDefault, bad);
        CHECK_MESSAGE(bytes(bad).warnings == 1, bad);
    }
    const auto timeout = [](const char* text) {
        return from_environment({{"HOME", "/h"}, {"JITNEY_CACHE_LOCK_TIMEOUT_MS", text}});
    };
    CHECK(timeout("0").timeout == 0);
    CHECK(timeout("1500").timeout == 1500);
    for (const char* bad : {"x", "-1", "1s", "99999999999999"}) {
        CHECK(timeout(bad).timeout == 60000);
        CHECK(timeout(bad).warnings == 1);
    }
}

TEST_CASE("a root that can't be one: a file, below a file, too long, in /proc") {
    TempDir temp;
    write_file(temp / "file", "text");
    check_works_uncached(temp / "file", 1);
    check_works_uncached(temp / "file/cache", 1);
    check_works_uncached(temp.path() + "/" + std::string(300, 'x'), 1);
    check_works_uncached(std::string(PATH_MAX + 10, 'x'), 1);
    check_works_uncached("/proc/jitney", 1);
    CHECK(read_file(temp / "file") == "text");
}

TEST_CASE("a path just short of PATH_MAX is a path like any other") {
    TempDir temp;
    std::string root = temp.path();
    while (root.size() + 101 < PATH_MAX - 1)
        root.append("/").append(100, 'p');
    root += '/';
    root.append(PATH_MAX - 1 - root.size(), 'q');
    REQUIRE(root.size() == PATH_MAX - 1);
    Store store(options_for(root));
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
    CHECK(store.list().size() == 1);
}

TEST_CASE("in a read-only directory hits work and misses compile") {
    TempDir temp;
    const std::string root = temp / "cache";
    REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
    for (const auto& item : fs::recursive_directory_iterator(root)) {
        if (item.is_directory()) REQUIRE(::chmod(item.path().c_str(), 0500) == 0);
    }
    REQUIRE(::chmod(root.c_str(), 0500) == 0);
    CHECK(as_plain_user(temp.path(), [&] {
              WarningLog log;
              Options options = options_for(root);
              options.warn = log.sink();
              Store store(options);
              const Got hit = get(store);
              if (!hit.right || hit.computed) return 1;
              for (const char* variant : {"64", "256"}) {
                  const Got miss = get(store, variant);
                  if (!miss.right || !miss.computed) return 2;
              }
              return log.count() == 1 && log.mentions(root) ? 0 : 3;
          }) == 0);
}

TEST_CASE("a parent that can't be written gives one warning") {
    TempDir temp;
    REQUIRE(::mkdir((temp / "home").c_str(), 0500) == 0);
    CHECK(as_plain_user(temp.path(), [&] {
              WarningLog log;
              Options options = options_for(temp / "home/.cache/jitney");
              options.warn = log.sink();
              Store store(options);
              for (int i = 0; i < 3; ++i) {
                  const Got got = get(store);
                  if (!got.right || !got.computed) return 1;
              }
              return log.count() == 1 && log.mentions("Permission denied") ? 0 : 2;
          }) == 0);
}

TEST_CASE("a directory deleted while it is in use is made again") {
    TempDir temp;
    const std::string root = temp / "a/cache";
    WarningLog log;
    Options options = options_for(root);
    options.warn = log.sink();
    Store store(options);
    CHECK(get(store).computed);
    fs::remove_all(temp / "a");
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
    fs::remove_all(fs::path(path_of(root, sample_key())).parent_path());
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
    fs::remove_all(root);
    store.get_or_compute(sample_key("64"), kCompiler, [&] {
        fs::remove_all(temp / "a");  // in the middle of a compile
        return sample_entry("64");
    });
    CHECK_FALSE(get(store, "64").computed);
    CHECK(log.count() == 0);
}

TEST_CASE("a process without descriptors left compiles all the same") {
    TempDir temp;
    CHECK(in_child([&] {
              Store store(options_for(temp / "cache"));
              if (!get(store).computed) return 1;
              rlimit limit{};
              ::getrlimit(RLIMIT_NOFILE, &limit);
              const rlimit none{0, limit.rlim_max};
              ::setrlimit(RLIMIT_NOFILE, &none);
              const Got without = get(store);
              if (!without.right || !without.computed) return 2;
              ::setrlimit(RLIMIT_NOFILE, &limit);
              return get(store).computed ? 3 : 0;
          }) == 0);
}

TEST_CASE("a warning that throws harms nobody") {
    TempDir temp;
    write_file(temp / "file", "text");
    Options options = options_for(temp / "file");
    options.warn = [](std::string_view) { throw std::runtime_error("the log is full"); };
    Store store(options);
    CHECK(get(store).right);
}
