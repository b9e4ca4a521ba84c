// Look-up and keeping: which entry is offered, by whom, and what becomes of a bad one.
#include <unistd.h>

#include <algorithm>

#include "tests/cache/support.hpp"
#include "tests/support/random.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
using jitney::tests::Random;

namespace {

std::vector<std::string> compilers(Store& store, const Key& key, std::string_view preferred) {
    std::vector<std::string> found;
    Candidates candidates = store.find(key, preferred);
    while (const auto hit = candidates.next()) {
        found.push_back(hit->entry->compiler + (hit->entry->kind == PayloadKind::ptx ? "p" : "") +
                        "@" + std::to_string(hit->layer));
    }
    return found;
}

void fill(const std::string& root, std::string_view compiler,
          PayloadKind kind = PayloadKind::cubin) {
    Entry entry = sample_entry("128", compiler);
    entry.kind = kind;
    REQUIRE(Store(options_for(root)).put(sample_key(), entry));
}

}  // namespace

TEST_CASE("what is computed once is found by the next store") {
    TempDir temp;
    const std::string root = temp / "a/b/cache";
    {
        Store store(options_for(root));
        const Outcome outcome =
            store.get_or_compute(sample_key(), kCompiler, [] { return sample_entry(); });
        CHECK(outcome.origin == Origin::computed);
        CHECK(outcome.kept);
        CHECK_FALSE(outcome.hit.has_value());
    }
    CHECK(mode_of(temp / "a") == 0700);
    CHECK(mode_of(root) == 0700);
    CHECK(mode_of(path_of(root, sample_key())) == 0600);
    Store store(options_for(root));
    const Outcome outcome = store.get_or_compute(
        sample_key(), kCompiler, []() -> Entry { throw std::runtime_error("it is there"); });
    CHECK(outcome.origin == Origin::private_layer);
    REQUIRE(outcome.hit.has_value());
    CHECK(outcome.hit->path == path_of(root, sample_key()));
    CHECK(outcome.entry->payload == payload_for("128"));
    CHECK(names_under(root).size() == 1);  // neither a temporary file nor a lock stays
}

TEST_CASE("candidates: the preferred compiler, then the newest, private before read-only") {
    TempDir temp;
    const std::string own = temp / "own";
    const std::string shared = temp / "shared";
    fill(own, "nvrtc12.9");
    fill(own, "nvrtc12.10");
    fill(own, "nvrtc12.10", PayloadKind::ptx);
    fill(shared, "nvrtc12.10");
    fill(shared, "nvrtc13.1");
    fill(shared, "nvrtc9.0");
    Options options = options_for(own);
    options.readonly_roots = {temp / "absent", shared};
    Store store(options);
    using Names = std::vector<std::string>;
    CHECK(compilers(store, sample_key(), "") == Names{"nvrtc13.1@2", "nvrtc12.10@0", "nvrtc12.10@2",
                                                      "nvrtc12.10p@0", "nvrtc12.9@0",
                                                      "nvrtc9.0@2"});
    CHECK(compilers(store, sample_key(), "nvrtc12.9") == Names{"nvrtc12.9@0", "nvrtc13.1@2",
                                                               "nvrtc12.10@0", "nvrtc12.10@2",
                                                               "nvrtc12.10p@0", "nvrtc9.0@2"});
    CHECK(compilers(store, sample_key(), "nvrtc14.0").size() == 6);
    CHECK(compilers(store, sample_key(), "../..").size() == 6);
    CHECK(compilers(store, sample_key("64"), "").empty());
}

TEST_CASE("get_or_compute takes only the compiler that it is told, if it is told one") {
    TempDir temp;
    fill(temp / "cache", "nvrtc12.9");
    Store store(options_for(temp / "cache"));
    const Outcome any = store.get_or_compute(sample_key(), "", [] { return sample_entry(); });
    CHECK(any.origin == Origin::private_layer);
    const Outcome exact =
        store.get_or_compute(sample_key(), kCompiler, [] { return sample_entry(); });
    CHECK(exact.origin == Origin::computed);
    CHECK(store.list().size() == 2);
}

TEST_CASE("a read-only layer gives hits and is never written") {
    TempDir temp;
    const std::string shared = temp / "shared";
    fill(shared, kCompiler);
    set_age(path_of(shared, sample_key()), 100000);
    const std::string before = read_file(path_of(shared, sample_key()));
    Options options = options_for("");
    options.readonly_roots = {shared};
    Store store(options);
    CHECK_FALSE(get(store).computed);
    CHECK(get(store, "64").computed);
    CHECK(store.list().size() == 1);
    CHECK(store.list()[0].last_used < std::time(nullptr) - 90000);

    write_file(path_of(shared, sample_key()), "junk");
    CHECK(get(store).right);
    CHECK(get(store).computed);
    CHECK(read_file(path_of(shared, sample_key())) == "junk");
    store.clear();
    CHECK(exists(path_of(shared, sample_key())));
}

TEST_CASE("a damaged entry is a miss, is repaired, and the second run hits") {
    TempDir temp;
    const std::string root = temp / "cache";
    const std::string path = path_of(root, sample_key());
    Options quick = options_for(root);
    CHECK(get(*std::make_unique<Store>(quick)).computed);
    const std::string good = read_file(path);
    Random random = Random::fresh();
    INFO(random.text());
    std::vector<std::string> damaged{"", good + "x", good + good, std::string(good.size(), '\0'),
                                     encode(sample_entry("64"))};
    for (int i = 0; i < 40; ++i) {
        std::string bad = good;
        char& byte = bad[random.bits() % bad.size()];
        byte = static_cast<char>(byte ^ (1 << random.bits() % 8));
        damaged.push_back(bad);
        damaged.push_back(good.substr(0, random.bits() % good.size()));
    }
    for (const std::string& bad : damaged) {
        write_file(path, bad);
        WarningLog log;
        Options options = quick;
        options.warn = log.sink();
        Store store(options);
        const Got first = get(store);
        REQUIRE(first.right);
        REQUIRE(first.computed);
        const Got second = get(store);
        REQUIRE(second.right);
        REQUIRE_FALSE(second.computed);
        REQUIRE(read_file(path) == good);
        REQUIRE(log.count() <= 1);
    }
}

TEST_CASE("a damaged entry of the private layer is removed even where nothing is compiled") {
    TempDir temp;
    const std::string path = path_of(temp / "cache", sample_key());
    Store store(options_for(temp / "cache"));
    get(store);
    write_file(path, "junk");
    CHECK_FALSE(store.find(sample_key()).next().has_value());
    CHECK_FALSE(exists(path));
}

TEST_CASE("an entry of another schema is a miss and stays until it is replaced") {
    TempDir temp;
    const std::string path = path_of(temp / "cache", sample_key());
    std::string bytes = encode(sample_entry());
    for (const char schema : {'\0', '\2'}) {
        bytes[8] = schema;
        write_file(path, bytes);
        Store store(options_for(temp / "cache"));
        CHECK_FALSE(store.find(sample_key()).next().has_value());
        CHECK(exists(path));
        const Verification verification = store.verify();
        CHECK(verification.checked == 0);
        CHECK(verification.bad.empty());
        CHECK(verification.other_versions == 1);
        const Statistics statistics = store.stat();
        CHECK(statistics.entries == 0);
        CHECK(statistics.damaged == 0);
        CHECK(statistics.other_versions == 1);
        CHECK(get(store).computed);
        CHECK_FALSE(get(store).computed);
    }
}

TEST_CASE("a collision of digests is a miss") {
    TempDir temp;
    Store store(options_for(temp / "cache"));
    REQUIRE(get(store).computed);
    Key other = sample_key("64");
    other.digest = sample_key().digest;  // as if the two texts had one digest
    CHECK_FALSE(store.find(other).next().has_value());
    CHECK(exists(path_of(temp / "cache", sample_key())));
}

TEST_CASE("a sound entry that the driver refuses is not offered twice") {
    TempDir temp;
    const std::string root = temp / "cache";
    const auto garbage = [] {
        Entry entry = sample_entry();
        entry.payload = std::string("not a cubin");
        return entry;
    };
    REQUIRE(Store(options_for(root)).put(sample_key(), garbage()));
    Store store(options_for(root));
    const auto hit = store.find(sample_key(), kCompiler).next();
    REQUIRE(hit.has_value());
    store.reject(*hit);
    CHECK_FALSE(exists(path_of(root, sample_key())));
    CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());

    // The same bytes once more are not kept; they would be refused by the next process too.
    const Outcome again = store.get_or_compute(sample_key(), kCompiler, garbage);
    CHECK(again.origin == Origin::computed);
    CHECK_FALSE(again.kept);
    CHECK_FALSE(exists(path_of(root, sample_key())));
    CHECK(get(store).computed);
    CHECK_FALSE(get(store).computed);
}

TEST_CASE("a refused entry of a read-only layer is left there and passed over") {
    TempDir temp;
    fill(temp / "shared", kCompiler);
    Options options = options_for(temp / "own");
    options.readonly_roots = {temp / "shared"};
    Store store(options);
    const auto hit = store.find(sample_key(), kCompiler).next();
    REQUIRE(hit.has_value());
    CHECK(hit->layer == 1);
    store.reject(*hit);
    CHECK(exists(path_of(temp / "shared", sample_key())));
    CHECK_FALSE(store.find(sample_key(), kCompiler).next().has_value());
    const Outcome again =
        store.get_or_compute(sample_key(), kCompiler, [] { return sample_entry(); });
    CHECK(again.origin == Origin::computed);
}

TEST_CASE("rejecting an entry spares the one that replaced it") {
    TempDir temp;
    Store store(options_for(temp / "cache"));
    REQUIRE(get(store).computed);
    const auto hit = store.find(sample_key(), kCompiler).next();
    REQUIRE(hit.has_value());
    Entry better = sample_entry();
    better.payload += "!";
    REQUIRE(store.put(sample_key(), better));
    store.reject(*hit);
    const auto now = store.find(sample_key(), kCompiler).next();
    REQUIRE(now.has_value());
    CHECK(now->entry->payload == better.payload);
}

TEST_CASE("the maintenance calls say what is there") {
    TempDir temp;
    const std::string root = temp / "cache";
    Store store(options_for(root));
    for (const char* variant : {"64", "128", "256"})
        REQUIRE(get(store, variant).computed);
    const std::vector<Record> records = store.list();
    REQUIRE(records.size() == 3);
    CHECK(records[0].specialization == "sample<head_dim=128>@sm_90a");
    CHECK(records[0].digest == sample_key("128").digest);
    CHECK(records[0].compiler == kCompiler);
    CHECK(records[0].material == sample_key("128").material);
    CHECK(records[0].bytes == encode(sample_entry("128")).size());
    CHECK(records[0].last_used > std::time(nullptr) - 3600);

    const Statistics statistics = store.stat();
    REQUIRE(statistics.layers.size() == 1);
    CHECK(statistics.layers[0].root == root);
    CHECK(statistics.layers[0].exists);
    CHECK(statistics.entries == 3);
    CHECK(statistics.max_bytes == std::uint64_t{1} << 30);

    write_file(path_of(root, sample_key("64")), encode(sample_entry("256")));
    const std::string linked = path_of(root, sample_key("256"));
    REQUIRE(::rename(linked.c_str(), (temp / "elsewhere").c_str()) == 0);
    REQUIRE(::symlink((temp / "elsewhere").c_str(), linked.c_str()) == 0);
    const Verification verification = store.verify();
    CHECK(verification.checked == 3);
    std::vector<std::string> bad;
    for (const BadEntry& entry : verification.bad) {
        bad.push_back(entry.path);
        CHECK_FALSE(entry.reason.empty());
    }
    std::sort(bad.begin(), bad.end());
    std::vector<std::string> expected{linked, path_of(root, sample_key("64"))};
    std::sort(expected.begin(), expected.end());
    CHECK(bad == expected);
    REQUIRE(::unlink(linked.c_str()) == 0);
    REQUIRE(store.put(sample_key("256"), sample_entry("256")));

    const std::uint64_t one = records[0].bytes;
    const Removal pruned = store.prune(one + 10);
    CHECK(pruned.entries == 1);
    CHECK(pruned.removed_entries == 2);
    const Removal cleared = store.clear();
    CHECK(cleared.removed_entries == 1);
    CHECK(cleared.entries == 0);
    CHECK(names_under(root).empty());
}

TEST_CASE("a long key is listed too") {
    TempDir temp;
    Store store(options_for(temp / "cache"));
    KeyBuilder builder("long@sm_90");
    for (int i = 0; i < 1000; ++i)
        builder.source("header" + std::to_string(i), "text");
    REQUIRE(store.put(builder.finish(), sample_entry()));
    REQUIRE(store.list().size() == 1);
    CHECK(store.list()[0].specialization == "long@sm_90");
}
