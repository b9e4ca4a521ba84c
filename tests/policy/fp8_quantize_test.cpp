#include "operations/fp8_quantize/choose.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "tests/policy/problems.hpp"

namespace jitney::policy {
namespace {

using tests::Random;

const DeviceFacts kHopper = typical_facts({90, 'a'});

Fp8QuantizeProblem matrix(std::int64_t rows, std::int64_t cols, int codes = kRowCodes) {
    Fp8QuantizeProblem problem;
    problem.format = kBf16;
    problem.out = kFp8E4m3;
    problem.codes = codes;
    problem.rows = rows;
    problem.cols = cols;
    return problem;
}

std::string text_of_choice(const Fp8QuantizeProblem& problem, const DeviceFacts& facts = kHopper) {
    return text_of(choose_fp8_quantize(problem, facts).spec);
}

// Each element is in the part of one thread of one tile, and no tile lies outside.
void check_cover(const Fp8QuantizeProblem& p, const Fp8Tiling& t) {
    const std::int64_t across = std::int64_t{1} << t.log2_across;
    const std::int64_t tile_cols = kFp8ThreadCols * across;
    const std::int64_t tile_rows = kFp8ThreadRows * (kFp8QuantizeThreads >> t.log2_across);
    REQUIRE(t.tiles % t.tiles_across == 0);
    const std::int64_t down = t.tiles / t.tiles_across;
    CHECK(t.tiles_across * tile_cols >= t.cols);
    CHECK((t.tiles_across - 1) * tile_cols < t.cols);
    CHECK(down * tile_rows >= t.rows);
    CHECK((down - 1) * tile_rows < t.rows);
    CHECK((t.rows - 1) * t.cols + t.last_cols == p.rows * p.cols);
    CHECK(t.last_cols >= 1);
    CHECK(t.last_cols <= t.cols);
    CHECK((t.recut || t.last_cols == p.cols));
}

TEST_CASE("random matrices: the tiles cover each element once") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 2000; ++i) {
        Fp8QuantizeProblem p = matrix(random.integer(1, 3000), random.integer(1, 9000),
                                      static_cast<int>(random.integer(0, 3)));
        p.amax = random.chance(0.5) || p.codes == kNoCodes;
        p.dense = random.chance(0.5);
        CAPTURE(p.rows);
        CAPTURE(p.cols);
        const Fp8QuantizeChoice choice = choose_fp8_quantize(p, kHopper);
        check_cover(p, choice.tiling);
        CHECK(choice.geometry.grid[0] >= 1);
        CHECK(choice.geometry.grid[0] <= static_cast<unsigned>(choice.tiling.tiles));
        CHECK(choice.geometry.block[0] == kFp8QuantizeThreads);
        CHECK(choice.counter_bytes == (p.amax ? 8 : 0));
    }
}

TEST_CASE("only what changes the machine code is in the text") {
    Fp8QuantizeProblem p = matrix(4096, 4096);
    CHECK(text_of_choice(p) == "fp8_quantize<format=bf16,out=e4m3,codes=row>@sm_90a");
    for (const auto& [rows, cols] : {std::pair{1, 3221}, std::pair{2333, 1}, std::pair{17, 5137}}) {
        for (const bool dense : {true, false}) {
            Fp8QuantizeProblem other = matrix(rows, cols);
            other.dense = dense;
            other.first_row = other.every_row = {false, false};
            CHECK(text_of_choice(other) == text_of_choice(p));
        }
    }
    p.codes = kBothCodes;
    p.out = kFp8E5m2;
    p.amax = true;
    CHECK(text_of_choice(p) == "fp8_quantize<format=bf16,out=e5m2,codes=both,amax=1>@sm_90a");
    CHECK(choose_fp8_quantize(p, kHopper).geometry.shared_bytes == 128 * 64 + 32);
}

TEST_CASE("below sm_89 the conversion is computed") {
    const Fp8QuantizeProblem p = matrix(4, 4, kTransposedCodes);
    const char* const text = "fp8_quantize<format=bf16,out=e4m3,codes=transposed";
    CHECK(text_of_choice(p, typical_facts({75, 0})) == text + std::string(",software=1>@sm_75"));
    CHECK(text_of_choice(p, typical_facts({86, 0})) == text + std::string(",software=1>@sm_86"));
    CHECK(text_of_choice(p, typical_facts({89, 0})) == text + std::string(">@sm_89"));
    CHECK(text_of_choice(p, typical_facts({120, 0})) == text + std::string(">@sm_120"));
    // Without codes there is nothing to convert, to whatever format.
    Fp8QuantizeProblem amax = amax_of(p);
    amax.out = kFp8E5m2;
    CHECK(text_of_choice(amax, typical_facts({75, 0})) ==
          "fp8_quantize<format=bf16,out=e4m3,codes=none,amax=1>@sm_75");
}

TEST_CASE("dynamic scaling is a launch for amax and one for the codes") {
    Fp8QuantizeProblem p = matrix(64, 64);
    p.amax = true;
    CHECK_FALSE(takes_two_launches(p));
    p.dynamic = true;
    CHECK(takes_two_launches(p));
    const Fp8QuantizeChoice codes = choose_fp8_quantize(p, kHopper);
    CHECK(text_of(codes.spec) == "fp8_quantize<format=bf16,out=e4m3,codes=row>@sm_90a");
    CHECK(codes.counter_bytes == 0);
    CHECK_FALSE(takes_two_launches(amax_of(p)));
    // Back from where the first ended.
    CHECK(codes.tiling.backwards);
    CHECK_FALSE(choose_fp8_quantize(amax_of(p), kHopper).tiling.backwards);
    const std::vector<Spec> catalogue = fp8_quantize_catalogue(p, kHopper);
    REQUIRE(catalogue.size() == 2);
    CHECK(catalogue[0] == choose_fp8_quantize(amax_of(p), kHopper).spec);
    CHECK(catalogue[1] == codes.spec);
}

TEST_CASE("a cast may begin before its predecessor ends, from sm_90 on") {
    const Fp8QuantizeProblem p = matrix(64, 64);
    CHECK(choose_fp8_quantize(p, kHopper).geometry.programmatic);
    CHECK(choose_fp8_quantize(p, typical_facts({120, 0})).geometry.programmatic);
    CHECK_FALSE(choose_fp8_quantize(p, typical_facts({89, 0})).geometry.programmatic);
    CHECK_FALSE(choose_fp8_quantize(p, kHopper).tiling.backwards);
}

TEST_CASE("rows without a gap are cut anew, so that any width is moved 16 bytes at a time") {
    Fp8QuantizeProblem odd = matrix(1481, 677);
    odd.every_row = {false, false};
    CHECK(choose_fp8_quantize(odd, kHopper).tiling.wide_x);
    CHECK(choose_fp8_quantize(odd, kHopper).tiling.wide_codes);
    odd.first_row.codes = false;
    CHECK(choose_fp8_quantize(odd, kHopper).tiling.wide_x);
    CHECK_FALSE(choose_fp8_quantize(odd, kHopper).tiling.wide_codes);
    odd.dense = false;
    CHECK_FALSE(choose_fp8_quantize(odd, kHopper).tiling.wide_x);
    odd.rows = 1;  // one row has no gap behind it
    CHECK(choose_fp8_quantize(odd, kHopper).tiling.wide_x);
}

TEST_CASE("few threads idle at the ends of strided rows") {
    for (const std::int64_t cols : {8, 64, 100, 1025, 1616, 5137, 8193, 100000}) {
        Fp8QuantizeProblem p = matrix(1000, cols);
        p.dense = false;
        const Fp8Tiling tiling = choose_fp8_quantize(p, kHopper).tiling;
        const std::int64_t groups = (cols + kFp8ThreadCols - 1) / kFp8ThreadCols;
        const std::int64_t threads = std::int64_t{tiling.tiles_across} << tiling.log2_across;
        CHECK(threads - groups <= std::max<std::int64_t>(groups / 8, 7));
    }
}

TEST_CASE("refusals") {
    const auto reason = [](const Fp8QuantizeProblem& p, Arch arch) {
        return reason_text(rank_fp8_quantize(p, typical_facts(arch)).candidates.at(0));
    };
    Fp8QuantizeProblem p = matrix(4, 4);
    CHECK(reason(p, {90, 'a'}).empty());
    CHECK(reason(p, {70, 0}) == "needs sm_75 or newer, this is sm_70");
    p.format = kFp8E4m3;
    CHECK(reason(p, {90, 'a'}) == "takes fp32, fp16, bf16, not e4m3");
    p = matrix(std::int64_t{1} << 40, std::int64_t{1} << 16, kTransposedCodes);
    CHECK(reason(p, {90, 'a'}) == "needs 1024 times 8589934592 tiles, above 2130706432");
    // What fits in memory is far below that.
    CHECK(reason(matrix(std::int64_t{1} << 20, std::int64_t{1} << 20), {90, 'a'}).empty());
    CHECK(reason(matrix(std::int64_t{1} << 36, 1, kBothCodes), {90, 'a'}).empty());
}

}  // namespace
}  // namespace jitney::policy
