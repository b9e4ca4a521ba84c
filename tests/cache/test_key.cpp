// Keys, digests and file names: what decides a hit, and what may reach the file system.
#include <map>
#include <set>

#include "tests/cache/support.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;

TEST_CASE("a digest prints and parses back") {
    const Digest digest = digest_of("jitney");
    CHECK(digest.hex().size() == 32);
    CHECK(Digest::from_hex(digest.hex()) == digest);
    CHECK(Digest{1, 0xab}.hex() == "000000000000000100000000000000ab");
    CHECK_FALSE(Digest::from_hex("").has_value());
    CHECK_FALSE(Digest::from_hex(std::string(31, '0')).has_value());
    CHECK_FALSE(Digest::from_hex(std::string(33, '0')).has_value());
    CHECK_FALSE(Digest::from_hex("0000000000000001000000000000 0ab").has_value());
    CHECK_FALSE(Digest::from_hex("000000000000000100000000000000AB").has_value());
    CHECK(digest_of({"jit", "", "ney"}) == digest);
    CHECK(digest_of("").hex() == "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing
}

TEST_CASE("a key's material is a text that reads well and never moves") {
    const Key key = KeyBuilder("rotary_emb<style=half>@sm_80")
                        .source("rotary/b.h", "b")
                        .source("common/a.h", "a")
                        .option("-O3")
                        .option("-a=b")
                        .finish();
    // Written out: a change here changes every key in every cache, which kSchema has to say.
    CHECK(key.material ==
          "jitney-key 1\n"
          "specialization 28 rotary_emb<style=half>@sm_80\n"
          "source 10 common/a.h " +
              digest_of("a").hex() + "\nsource 10 rotary/b.h " + digest_of("b").hex() +
              "\noption 3 -O3\noption 4 -a=b\n");
    CHECK(key.digest == digest_of(key.material));
    CHECK(specialization_of(key.material) == "rotary_emb<style=half>@sm_80");
    const Key reordered = KeyBuilder("rotary_emb<style=half>@sm_80")
                              .source("common/a.h", "a")
                              .source("rotary/b.h", "b")
                              .option("-O3")
                              .option("-a=b")
                              .finish();
    CHECK(reordered.material == key.material);
}

TEST_CASE("each field of a key, changed alone, makes another key") {
    struct Fields {
        std::string specialization = "k<a=1>@sm_90";
        std::uint32_t schema = kSchema;
        std::string source_name = "a.h";
        std::string source_text = "text";
        std::vector<std::string> options{"-x", "-y"};
    };
    const auto build = [](const Fields& fields) {
        KeyBuilder builder(fields.specialization, fields.schema);
        builder.source(fields.source_name, fields.source_text).source("z.h", "z");
        for (const std::string& option : fields.options)
            builder.option(option);
        return builder.finish();
    };
    std::vector<Fields> all(1);
    const auto changed = [&](auto change) {
        Fields fields;
        change(fields);
        all.push_back(fields);
    };
    changed([](Fields& f) { f.specialization = "k<a=2>@sm_90"; });
    changed([](Fields& f) { f.specialization = "k<a=1>@sm_90a"; });
    changed([](Fields& f) { f.schema = kSchema + 1; });
    changed([](Fields& f) { f.schema = kSchema - 1; });
    changed([](Fields& f) { f.source_name = "b.h"; });
    changed([](Fields& f) { f.source_text = "text "; });
    changed([](Fields& f) { f.source_text.clear(); });
    changed([](Fields& f) { f.options = {"-x"}; });
    changed([](Fields& f) { f.options = {"-y", "-x"}; });
    changed([](Fields& f) { f.options = {"-x", "-y", ""}; });
    changed([](Fields& f) { f.options = {"-x -y"}; });
    std::set<Digest> digests;
    for (const Fields& fields : all)
        digests.insert(build(fields).digest);
    CHECK(digests.size() == all.size());

    TempDir temp;
    Store store(options_for(temp / "cache"));
    Entry entry = sample_entry();
    REQUIRE(store.put(build(all[0]), entry));
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(store.find(build(all[i])).next().has_value() == (i == 0));
    }
}

TEST_CASE("no text can pass for another line of the material") {
    const Key two = KeyBuilder("k@sm_90").option("-a").option("-b").finish();
    const Key one = KeyBuilder("k@sm_90").option("-a\noption 2 -b").finish();
    CHECK(two.digest != one.digest);
    CHECK(two.material != one.material);
    const Key odd = KeyBuilder("k 1\noption 3 -O3").option("-a").finish();
    CHECK(specialization_of(odd.material) == "k 1\noption 3 -O3");
    CHECK(specialization_of("") == "");
    CHECK(specialization_of("jitney-key 1\nspecialization 99999999999999999999 k\n") == "");
    CHECK(specialization_of("jitney-key 1\nspecialization 900 k\n") == "");
    CHECK(specialization_of("jitney-key 1\nsource 3 a.h abc\n") == "");
}

TEST_CASE("the difference of two keys names what differs") {
    const Key first = KeyBuilder("k@sm_90").source("a.h", "1").option("-x").finish();
    const Key second = KeyBuilder("k@sm_90").source("a.h", "2").option("-y").finish();
    const std::vector<std::string> expected{"option -x only in the first", "source a.h differs",
                                            "option -y only in the second"};
    CHECK(describe_difference(first.material, second.material) == expected);
    CHECK(describe_difference(first.material, first.material).empty());
    CHECK(describe_difference(first.material, "junk").size() == 1);
    CHECK(describe_difference(KeyBuilder("k").option("a").option("b").finish().material,
                              KeyBuilder("k").option("b").option("a").finish().material)
              .size() == 1);
}

TEST_CASE("only well-formed names are names") {
    for (const char* good : {"nvrtc13.0", "nvrtc12.9.1", "nvrtc13", "a0"}) {
        CHECK_MESSAGE(is_compiler(good), good);
    }
    const std::vector<std::string> bad{"",
                                       "nvrtc",
                                       "13.0",
                                       "nvrtc13.",
                                       "nvrtc.13",
                                       "NVRTC13.0",
                                       "nvrtc13.0/",
                                       "../nvrtc13.0",
                                       "nvrtc-13",
                                       "nvrtc13.0 ",
                                       "nvrtc13\n",
                                       "nvrtc1234567",
                                       "..",
                                       "nvrtc13..0",
                                       std::string(40, 'a') + "1",
                                       std::string("nvrtc13.0\0", 10)};
    for (const std::string& text : bad)
        CHECK_MESSAGE(!is_compiler(text), text);

    const EntryName name{digest_of("x"), "nvrtc13.0", PayloadKind::ptx};
    CHECK(name.file() == digest_of("x").hex() + "-nvrtc13.0.ptx");
    CHECK(name.shard() == digest_of("x").hex().substr(0, 2));
    CHECK(EntryName::parse(name.file()) == name);
    const std::string digest = digest_of("x").hex();
    for (const std::string& file :
         {digest, digest + "-nvrtc13.0", digest + "-nvrtc13.0.so", digest + "_nvrtc13.0.ptx",
          digest.substr(1) + "-nvrtc13.0.ptx", digest + "-.ptx", digest + "-nvrtc13.0.ptx ",
          digest + "-../../x1.ptx", std::string(".ptx"), std::string()}) {
        CHECK_MESSAGE(!EntryName::parse(file).has_value(), file);
    }
}

TEST_CASE("compiler versions are ordered by their numbers") {
    CHECK(is_newer_compiler("nvrtc13.0", "nvrtc12.9"));
    CHECK(is_newer_compiler("nvrtc12.10", "nvrtc12.9"));
    CHECK(is_newer_compiler("nvrtc12.9.1", "nvrtc12.9"));
    CHECK_FALSE(is_newer_compiler("nvrtc9.2", "nvrtc10.0"));
    CHECK_FALSE(is_newer_compiler("nvrtc13.0", "nvrtc13.0"));
}

TEST_CASE("a name that could leave the directory creates nothing") {
    TempDir temp;
    WarningLog log;
    Options options = options_for(temp / "cache");
    options.warn = log.sink();
    Store store(options);
    for (const std::string& compiler :
         {std::string("../../../evil1"), std::string("evil\n1"), std::string("evil1\0x", 7),
          std::string("/etc/evil1"), std::string()}) {
        CHECK_FALSE(store.put(sample_key(), sample_entry("128", compiler)));
        const Outcome outcome = store.get_or_compute(sample_key(), compiler,
                                                     [&] { return sample_entry("128", compiler); });
        CHECK(outcome.origin == Origin::computed);
        CHECK_FALSE(outcome.kept);
        CHECK(outcome.entry->payload == payload_for("128"));
    }
    CHECK(names_under(temp.path()).empty());
    CHECK(log.count() == 1);
}
