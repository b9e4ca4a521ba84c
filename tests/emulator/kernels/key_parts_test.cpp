// Every key is in one part, however keys are divided; and where the parts are a request's own, the
// number of blocks changes nothing.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/emulator/kernels/key_parts.hpp"
#include "tests/support/random.hpp"

namespace jitney::emulator {
namespace {

struct Keys {
    int first;
    int end;
};

Keys random_keys(tests::Random& random) {
    const int most = random.chance(0.1) ? 0x7fff0000 : (random.chance(0.5) ? 300 : 100000);
    const int end = static_cast<int>(random.integer(0, most));
    return {random.chance(0.5) ? 0 : static_cast<int>(random.integer(0, end)), end};
}

KeySplitting random_splitting(tests::Random& random) {
    const int tile = random.chance(0.5) ? 16 : 32;
    return {static_cast<int>(random.integer(1, 200)), 0, 0, tile * (random.chance(0.5) ? 1 : 4)};
}

// Parts follow each other from the first key to the last.
void check_cover(const KeySplitting& splitting, const Keys& keys) {
    int at = keys.first;
    const int parts = part_of(splitting, keys.first, keys.end, 0).parts;
    REQUIRE(parts >= 1);
    REQUIRE(parts <= splitting.blocks);
    for (int block = 0; block < parts; ++block) {
        const Part part = part_of(splitting, keys.first, keys.end, block);
        REQUIRE(part.parts == parts);
        REQUIRE(part.first == std::min(at, keys.end));
        REQUIRE(part.end >= part.first);
        if (block + 1 < parts && part.end < keys.end) {
            REQUIRE((part.end - part.first) % splitting.step == 0);
        }
        at = part.end;
    }
    REQUIRE(at == keys.end);
}

}  // namespace

TEST_CASE("key parts cover every key once") {
    tests::Random random = tests::Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 5000; ++round) {
        KeySplitting splitting = random_splitting(random);
        const Keys keys = random_keys(random);
        CAPTURE(keys.first);
        CAPTURE(keys.end);
        check_cover(splitting, keys);
        REQUIRE(part_of(splitting, keys.first, keys.end, 0).parts == splitting.blocks);
        splitting.part_keys = splitting.step * static_cast<int>(random.integer(1, 8));
        splitting.most_parts = static_cast<int>(random.integer(1, 100));
        check_cover(splitting, keys);
    }
}

TEST_CASE("key parts of a request do not depend on how many blocks there are for them") {
    tests::Random random = tests::Random::fresh();
    INFO(random.text());
    for (int round = 0; round < 5000; ++round) {
        KeySplitting splitting = random_splitting(random);
        splitting.part_keys = splitting.step * static_cast<int>(random.integer(1, 8));
        splitting.most_parts = static_cast<int>(random.integer(1, 100));
        const Keys keys = random_keys(random);
        splitting.blocks = splitting.most_parts;
        const int parts = part_of(splitting, keys.first, keys.end, 0).parts;
        REQUIRE(parts <= splitting.most_parts);
        KeySplitting other = splitting;
        other.blocks = parts + static_cast<int>(random.integer(0, 100));
        for (int block = 0; block < parts; ++block) {
            const Part one = part_of(splitting, keys.first, keys.end, block);
            const Part two = part_of(other, keys.first, keys.end, block);
            REQUIRE(one.first == two.first);
            REQUIRE(one.end == two.end);
            REQUIRE(one.parts == two.parts);
            if (block + 1 < parts) REQUIRE(one.end - one.first >= splitting.part_keys);
        }
    }
}

}  // namespace jitney::emulator
