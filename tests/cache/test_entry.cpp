// The format of an entry: any damage is found, and none is believed.

#include "cache/little_endian.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/random.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;
using jitney::tests::Random;

namespace {

std::string with_u32(std::string bytes, std::size_t at, std::uint32_t value) {
    std::string field;
    put_u32(field, value);
    return bytes.replace(at, 4, field);
}

std::string with_u64(std::string bytes, std::size_t at, std::uint64_t value) {
    std::string field;
    put_u64(field, value);
    return bytes.replace(at, 8, field);
}

}  // namespace

TEST_CASE("an entry comes back as it was") {
    for (const PayloadKind kind : {PayloadKind::cubin, PayloadKind::ptx}) {
        Entry entry = sample_entry();
        entry.kind = kind;
        const auto decoded = decode_as(encode(entry), name_of(entry));
        REQUIRE(decoded);
        CHECK(decoded.value->entry.material == entry.material);
        CHECK(decoded.value->entry.compiler == entry.compiler);
        CHECK(decoded.value->entry.lowered_name == entry.lowered_name);
        CHECK(decoded.value->entry.kind == kind);
        CHECK(decoded.value->entry.payload == entry.payload);
    }
}

TEST_CASE("the format is the documented one, byte by byte") {
    const Entry entry{"m", "c1", "n", PayloadKind::ptx, "payload"};
    const std::string bytes = encode(entry);
    const std::string head = std::string("\x89JITNEY\n", 8) + std::string("\1\0\0\0\2\0\0\0", 8) +
                             std::string("\2\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0", 16) +
                             std::string("\7\0\0\0\0\0\0\0", 8) + "c1mn";
    REQUIRE(bytes.size() == head.size() + 16 + 7);
    CHECK(bytes.substr(0, head.size()) == head);
    CHECK(bytes.substr(head.size() + 16) == "payload");
    const Digest checksum = digest_of(head + "payload");
    CHECK(get_u64(bytes, head.size()) == checksum.high);
    CHECK(get_u64(bytes, head.size() + 8) == checksum.low);
}

TEST_CASE("every bit of the head, flipped, is found") {
    const std::string good = encode(sample_entry());
    const std::size_t head = good.size() - payload_for("128").size();
    for (std::size_t at = 0; at < head; ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            std::string bad = good;
            bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
            const auto decoded = decode(bad);
            REQUIRE_FALSE(decoded);
            REQUIRE_FALSE(decoded.reason.empty());
        }
    }
}

TEST_CASE("a thousand random bits of the payload, flipped one by one, are found") {
    const std::string good = encode(sample_entry());
    const std::size_t payload = payload_for("128").size();
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 1000; ++i) {
        const std::size_t bit = random.bits() % (payload * 8);
        std::string bad = good;
        char& byte = bad[good.size() - payload + bit / 8];
        byte = static_cast<char>(byte ^ (1 << (bit % 8)));
        REQUIRE_FALSE(decode(bad));
    }
}

TEST_CASE("one bit of a payload as large as a cubin is found, wherever it is") {
    Entry entry = sample_entry();
    entry.payload = payload_for("128", 400'009);
    const std::string good = encode(entry);
    REQUIRE(decode(good));
    const std::size_t head = good.size() - entry.payload.size();
    // The last byte, and those around the sizes that a hash or a reader may work in.
    std::vector<std::size_t> places{0, entry.payload.size() - 1};
    for (std::size_t size = 64; size < entry.payload.size(); size *= 2)
        places.insert(places.end(), {size - 1, size, entry.payload.size() - size});
    for (const std::size_t place : places) {
        std::string bad = good;
        bad[head + place] = static_cast<char>(bad[head + place] ^ 1);
        CAPTURE(place);
        CHECK_FALSE(decode(bad));
    }
}

TEST_CASE("a file cut short anywhere, or with something behind it, is found") {
    const std::string good = encode(sample_entry());
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
        REQUIRE_FALSE(decode(std::string_view(good).substr(0, bytes)));
    }
    CHECK(decode(good));
    CHECK_FALSE(decode(good + '\0'));
    CHECK_FALSE(decode(good + good));
    CHECK_FALSE(decode(""));
}

TEST_CASE("lengths out of bounds are refused before anything is allocated") {
    const std::string good = encode(sample_entry());
    for (const std::size_t at : {16U, 20U, 24U, 28U}) {
        for (const std::uint32_t value : {0x7fffffffU, 0xffffffffU, 0x80000000U, 0x01000000U}) {
            const auto decoded = decode(with_u32(good, at, value));
            CHECK_FALSE(decoded);
            CHECK(decoded.flaw == Flaw::corrupt);
        }
    }
    for (const std::uint64_t value : {UINT64_MAX, UINT64_MAX - 600, std::uint64_t{1} << 63,
                                      std::uint64_t{1} << 40, std::uint64_t{0}}) {
        CHECK_FALSE(decode(with_u64(good, 32, value)));
    }
}

TEST_CASE("another schema is another library's, not damage") {
    const std::string good = encode(sample_entry());
    for (const std::uint32_t schema : {0U, kSchema + 1, 0xffffffffU}) {
        const auto decoded = decode(with_u32(good, 8, schema));
        CHECK_FALSE(decoded);
        CHECK(decoded.flaw == Flaw::other_schema);
        CHECK(decoded.reason.find("schema") != std::string::npos);
    }
}

TEST_CASE("an entry under another's name is refused") {
    const Entry entry = sample_entry();
    const std::string bytes = encode(entry);
    EntryName name = name_of(entry);
    CHECK(decode_as(bytes, name));
    name.digest.low ^= 1;
    CHECK_FALSE(decode_as(bytes, name));
    name = name_of(entry);
    name.kind = PayloadKind::ptx;
    CHECK_FALSE(decode_as(bytes, name));
    name = name_of(entry);
    name.compiler = std::string("nvrtc12.9");
    CHECK_FALSE(decode_as(bytes, name));
}

TEST_CASE("the head alone can be read, and asks for more when it is cut") {
    const std::string bytes = encode(sample_entry());
    const std::size_t head = bytes.size() - payload_for("128").size();
    for (std::size_t have = 0; have < head; ++have) {
        const auto decoded = decode_head(std::string_view(bytes).substr(0, have), bytes.size());
        REQUIRE_FALSE(decoded);
        REQUIRE(decoded.flaw == Flaw::needs_more);
    }
    const auto decoded = decode_head(std::string_view(bytes).substr(0, head), bytes.size());
    REQUIRE(decoded);
    CHECK(decoded.value->head_bytes == head);
    CHECK(decoded.value->payload_bytes == payload_for("128").size());
}

TEST_CASE("what can't be encoded says why") {
    Entry entry = sample_entry();
    CHECK(unencodable(entry).empty());
    entry.payload.clear();
    CHECK_FALSE(unencodable(entry).empty());
    entry = sample_entry();
    entry.lowered_name.resize(kMaxLoweredNameBytes + 1);
    CHECK_FALSE(unencodable(entry).empty());
    entry = sample_entry();
    entry.material.resize(kMaxMaterialBytes + 1);
    CHECK_FALSE(unencodable(entry).empty());
}
