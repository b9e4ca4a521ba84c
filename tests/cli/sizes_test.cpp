// Shapes told by the sizes of other tensors.
#include "cli/sizes.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace jitney::cli {

namespace {

Sizes sizes_of(std::set<std::string> fields = {}) {
    return Sizes([fields = std::move(fields)](std::string_view condition) {
        return fields.contains(std::string(condition));
    });
}

}  // namespace

TEST_CASE("A shape is told by sizes that other tensors have, the first alternative first") {
    Sizes sizes = sizes_of();
    CHECK(sizes.note("parts", "[parts, batch, heads] | [parts, total]", {3, 70}));
    CHECK(sizes.shape_of("[batch, heads] | [total, parts]") == Shape{70, 3});
    CHECK_FALSE(sizes.shape_of("[batch, heads]"));
    CHECK(sizes.note("more", "[batch, parts]", {5, 9}));
    CHECK(sizes.shape_of("[batch, parts]") == Shape{5, 3});  // what was known stays
    CHECK_FALSE(sizes.note("odd", "[batch] | [batch, heads, parts, total]", {1, 2}));
}

TEST_CASE("A condition says which alternative counts") {
    for (const bool turned : {false, true}) {
        Sizes sizes = sizes_of(turned ? std::set<std::string>{"trans", "mode=fast"}
                                      : std::set<std::string>{});
        CHECK(sizes.note("a", "trans: [k, m] | [m, k]", {2, 5}));
        CHECK(sizes.shape_of("[m]") == (turned ? Shape{5} : Shape{2}));
        CHECK(sizes.shape_of("mode=fast: [m, k] | [k]") == (turned ? Shape{5, 2} : Shape{5}));
    }
}

TEST_CASE("Any number of sizes goes by one name") {
    Sizes sizes = sizes_of();
    CHECK(sizes.note("x", "[rows..., cols]", {2, 3, 4}));
    CHECK(sizes.shape_of("[rows..., other]") == std::nullopt);
    CHECK(sizes.shape_of("[cols, rows]") == Shape{4, 6});
    CHECK(sizes.shape_of("[rows..., cols, 7]") == Shape{2, 3, 4, 7});
    Sizes row = sizes_of();
    CHECK(row.note("x", "[rows..., cols]", {4}));
    CHECK(row.shape_of("[rows..., cols]") == Shape{4});
    CHECK(row.shape_of("[rows]") == Shape{1});
    CHECK_FALSE(row.note("number", "[rows..., cols]", {}));
}

TEST_CASE("Sizes are counted with, and a tensor may have another's shape") {
    Sizes sizes = sizes_of();
    sizes.set("history", 16);
    CHECK(sizes.note("k", "[batch + 1, k]", {9, 130}));
    CHECK_FALSE(sizes.shape_of("[batch]"));  // a sum tells no size
    CHECK(sizes.shape_of("[3, 4 + history]") == Shape{3, 20});
    CHECK(sizes.shape_of("[k / 128, k * 2]") == Shape{2, 260});
    CHECK(sizes.note("like", "k", {9, 130}));
    CHECK(sizes.shape_of("like") == Shape{9, 130});
    CHECK(sizes.shape_of("k") == Shape{9, 130});
    CHECK_FALSE(sizes.shape_of("[like]"));
}

}  // namespace jitney::cli
