// Export and import: only what is sound travels, and a damaged bundle can't harm.
#include <fcntl.h>
#include <unistd.h>

#include "cache/little_endian.hpp"
#include "cache/temporary.hpp"
#include "jitney/error.hpp"
#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;

namespace {

constexpr std::size_t kHeader = 16;

std::string bundle_of(const TempDir& temp) {
    Store store(options_for(temp / "source"));
    for (const char* variant : {"64", "128", "256"})
        get(store, variant);
    REQUIRE(store.export_bundle(temp / "bundle", store.list()) == 3);
    return read_file(temp / "bundle");
}

ImportReport import(const TempDir& temp, std::string_view bytes, const std::string& root) {
    write_file(temp / "given", bytes);
    return Store(options_for(root)).import_bundle(temp / "given");
}

jitney::ErrorCode code_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const jitney::Error& error) {
        CHECK(std::string(error.what()).size() > 20);
        return error.code();
    }
    return jitney::ErrorCode::internal;
}

}  // namespace

TEST_CASE("what is exported can be imported elsewhere, once") {
    TempDir temp;
    const std::string bundle = bundle_of(temp);
    const std::string root = temp / "target";
    const ImportReport first = import(temp, bundle, root);
    CHECK(first.imported == 3);
    CHECK(first.present == 0);
    CHECK(first.bad.empty());
    const ImportReport second = import(temp, bundle, root);
    CHECK(second.imported == 0);
    CHECK(second.present == 3);
    Store store(options_for(root));
    for (const char* variant : {"64", "128", "256"})
        CHECK_FALSE(get(store, variant).computed);
    CHECK(store.verify().bad.empty());
    // A bundle is the same whoever exports it.
    store.export_bundle(temp / "again", store.list());
    CHECK(read_file(temp / "again") == bundle);
}

TEST_CASE("the bundle's format is the documented one") {
    TempDir temp;
    Store store(options_for(temp / "cache"));
    get(store);
    REQUIRE(store.export_bundle(temp / "bundle", store.list()) == 1);
    const std::string entry = encode(sample_entry());
    std::string expected("\x89JITBND\n", 8);
    put_u32(expected, kSchema);
    put_u32(expected, 1);
    put_u64(expected, entry.size());
    CHECK(read_file(temp / "bundle") == expected + entry);
}

TEST_CASE("entries that vanished or rotted are not exported") {
    TempDir temp;
    Store store(options_for(temp / "cache"));
    for (const char* variant : {"64", "128", "256"})
        get(store, variant);
    const auto records = store.list();
    REQUIRE(::unlink(path_of(temp / "cache", sample_key("64")).c_str()) == 0);
    write_file(path_of(temp / "cache", sample_key("128")), "junk");
    CHECK(store.export_bundle(temp / "bundle", records) == 1);
    CHECK(store.export_bundle(temp / "empty", {}) == 0);
    CHECK(import(temp, read_file(temp / "empty"), temp / "target").bad.empty());
}

TEST_CASE("a damaged item is left out, the others are imported") {
    TempDir temp;
    std::string bundle = bundle_of(temp);
    bundle[kHeader + 8 + 200] = static_cast<char>(bundle[kHeader + 8 + 200] ^ 1);
    const ImportReport report = import(temp, bundle, temp / "target");
    CHECK(report.imported == 2);
    REQUIRE(report.bad.size() == 1);
    CHECK(report.bad[0].path == "entry 1");
}

TEST_CASE("a bundle cut short anywhere imports only whole entries") {
    TempDir temp;
    const std::string bundle = bundle_of(temp);
    for (std::size_t bytes = 0; bytes < bundle.size(); bytes += bytes < 100 ? 1 : 37) {
        const std::string root = temp / "target";
        if (bytes < kHeader) {
            CHECK(code_of([&] { import(temp, bundle.substr(0, bytes), root); }) ==
                  jitney::ErrorCode::io);
            continue;
        }
        const ImportReport report = import(temp, bundle.substr(0, bytes), root);
        REQUIRE_FALSE(report.bad.empty());
        REQUIRE(report.imported + report.present < 3);
        REQUIRE(Store(options_for(root)).verify().bad.empty());
    }
}

TEST_CASE("lengths, counts and schemas that lie") {
    TempDir temp;
    const std::string bundle = bundle_of(temp);
    const auto with = [&](std::size_t at, std::uint64_t value, int bytes) {
        std::string field;
        put_u64(field, value, bytes);
        return std::string(bundle).replace(at, field.size(), field);
    };
    const std::string root = temp / "target";
    for (const std::uint64_t length : {std::uint64_t{0}, UINT64_MAX, std::uint64_t{1} << 40,
                                       std::uint64_t{1} << 28, std::uint64_t{5}}) {
        CHECK_FALSE(import(temp, with(kHeader, length, 8), root).bad.empty());
    }
    CHECK(import(temp, with(12, 2, 4), temp / "two").bad.size() == 1);  // something follows
    CHECK(import(temp, with(12, 4, 4), temp / "four").bad.size() == 1);
    CHECK(import(temp, with(12, 0xffffffff, 4), temp / "many").bad.size() == 1);
    CHECK(import(temp, bundle + "x", temp / "junk").bad.size() == 1);
    for (const std::string& bytes : {with(8, 0, 4), with(8, kSchema + 1, 4), with(0, 0, 1)}) {
        CHECK(code_of([&] { import(temp, bytes, root); }) == jitney::ErrorCode::io);
    }
}

TEST_CASE("faults of export and import are errors that say what to do") {
    TempDir temp;
    const std::string bundle = bundle_of(temp);
    Store store(options_for(temp / "source"));
    CHECK(code_of([&] { store.export_bundle(temp / "no/such/dir/bundle", store.list()); }) ==
          jitney::ErrorCode::io);
    CHECK(code_of([&] { store.import_bundle(temp / "absent"); }) == jitney::ErrorCode::io);
    Store nowhere(options_for(""));
    CHECK(code_of([&] { nowhere.import_bundle(temp / "bundle"); }) == jitney::ErrorCode::io);

    for (const char* name : {"write", "fsync", "close", "rename"}) {
        FaultyFiles files;
        files.only = name;
        files.mode = FaultyFiles::Mode::from_then_on;
        files.error = ENOSPC;
        Options options = options_for(temp / "source");
        options.file_system = &files;
        Store full(options);
        CHECK(code_of([&] { full.export_bundle(temp / "bundle", full.list()); }) ==
              jitney::ErrorCode::io);
        CHECK(read_file(temp / "bundle") == bundle);  // the old one is whole
        CHECK(names_under(temp.path(), ".tmp-").empty());
    }
    FaultyFiles files;
    files.only = "rename";
    files.mode = FaultyFiles::Mode::once;
    files.error = ENOSPC;
    Options options = options_for(temp / "target");
    options.file_system = &files;
    Store full(options);
    const ImportReport report = full.import_bundle(temp / "bundle");
    CHECK(report.imported == 2);
    CHECK(report.bad.size() == 1);
}

TEST_CASE("an import keeps what the cap holds, and counts what it left out") {
    TempDir temp;
    const std::string bundle = bundle_of(temp);
    const std::uint64_t one = encode(sample_entry("128")).size();
    for (const std::uint64_t fit : {0U, 1U, 2U, 3U}) {
        // Older ones go for those that are imported; for younger ones these go themselves.
        for (const std::string others : {"none", "older", "younger"}) {
            const bool had_others = others != "none";
            const std::string root = temp / ("target" + std::to_string(fit) + others);
            if (had_others) {
                Store store(options_for(root));
                for (const char* variant : {"1", "2"}) {
                    get(store, variant);
                    const std::string path = path_of(root, sample_key(variant));
                    set_age(path, others == "older" ? 100 : -100);
                    // A date ahead counts as now, to the last nanosecond of which none comes.
                    struct stat status {};
                    REQUIRE(::stat(path.c_str(), &status) == 0);
                    const timespec last = {status.st_mtim.tv_sec, 999'999'999};
                    const timespec times[2] = {last, last};
                    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
                }
            }
            Options options = options_for(root);
            options.max_bytes = fit * one + one / 2;
            write_file(temp / "given", bundle);
            const ImportReport report = Store(options).import_bundle(temp / "given");
            CHECK(report.bad.empty());
            CHECK(report.imported + report.left_out == 3);
            const Statistics statistics = Store(options_for(root)).stat();
            if (report.imported != 0) CHECK(statistics.bytes <= options.max_bytes);
            std::uint64_t there = 0;
            for (const char* variant : {"64", "128", "256"})
                there += exists(path_of(root, sample_key(variant)));
            CHECK(report.imported == there);
            if (!had_others) CHECK(report.imported == fit);
        }
    }
}

TEST_CASE("an entry whose key is no key's text is not imported, listed or used") {
    const std::string source = "source 8 common/x 5d41402abc4b2a76b9719d911017c592\n";
    const std::vector<std::string> materials = {
        "",
        "junk",
        "jitney-key 1\n",
        "jitney-key 1\nspecialization 0 \n" + source,
        "jitney-key 2\nspecialization 1 k\n" + source,
        "jitney-key 1\nspecialization 01 k\n" + source,
        "jitney-key 1\n" + source + "specialization 1 k\n",
        "jitney-key 1\nspecialization 1 k\nspecialization 1 k\n",
        "jitney-key 1\nspecialization 1 k\nmore 1 k\n",
        "jitney-key 1\nspecialization 1 k\nsource 1 x zz41402abc4b2a76b9719d911017c592\n",
        KeyBuilder("k\n2 entries, 3 B").finish().material,
        KeyBuilder("k\x1b[2J").finish().material,
        KeyBuilder(std::string(kMaxSpecializationBytes + 1, 'k')).finish().material,
    };
    CHECK(material_flaw(sample_key().material).empty());
    CHECK(material_flaw(KeyBuilder(std::string(kMaxSpecializationBytes, 'k')).finish().material)
              .empty());
    for (const std::string& material : materials) {
        INFO(material.substr(0, 100));
        CHECK_FALSE(material_flaw(material).empty());
        Entry entry = sample_entry();
        entry.material = material;
        const std::string bytes = encode(entry);
        std::string bundle("\x89JITBND\n", 8);
        put_u32(bundle, kSchema);
        put_u32(bundle, 1);
        put_u64(bundle, bytes.size());
        TempDir temp;
        const ImportReport report = import(temp, bundle + bytes, temp / "target");
        CHECK(report.imported == 0);
        CHECK(report.bad.size() == 1);
        // Put in place by hand, it is damaged.
        const std::string root = temp / "cache";
        REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
        write_file(path_of(root, Key::from_material(material)), bytes);
        Store store(options_for(root));
        CHECK(store.list().size() == 1);
        CHECK(store.stat().damaged == 1);
        CHECK(store.verify().bad.size() == 1);
        CHECK_FALSE(store.put(Key::from_material(material), sample_entry()));
    }
}

TEST_CASE("what a killed export left is removed by the next, and nothing else is") {
    TempDir temp;
    bundle_of(temp);
    Store store(options_for(temp / "source"));
    const std::string left = temp / ".jitney-export-1-0-abc";
    for (const std::string& name : {left, temp / ".tmp-1-0-abc", temp / ".jitney-export-mine"})
        write_file(name, "half");
    QuickFiles files;
    const Temporary written =
        Temporary::create(files, AT_FDCWD, temp / "", kBundleTempPrefix, 0600);
    REQUIRE(store.export_bundle(temp / "again", store.list()) == 3);
    CHECK_FALSE(exists(left));
    CHECK(exists(temp / ".tmp-1-0-abc"));
    CHECK(exists(temp / ".jitney-export-mine"));
    CHECK(exists(written.name));
}
