#include "operations/fp8_quantize/choose.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "kernel_sources/common/constants.h"
#include "kernel_sources/fp8/quantize_params.h"
#include "kernel_sources/fp8/quantize_scales.h"
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

Fp8QuantizeProblem of_parts(int granularity, std::int64_t rows, std::int64_t cols) {
    Fp8QuantizeProblem problem = matrix(rows, cols);
    problem.granularity = granularity;
    problem.dynamic = problem.amax = true;
    return problem;
}

std::string text_of_scales(const Fp8QuantizeProblem& problem) {
    return text_of(choose_fp8_scales(problem, kHopper).spec);
}

TEST_CASE("several scales take one launch, of a kernel that makes such") {
    const char* const texts[] = {
        "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=512,vectors=1>@sm_90a",
        "fp8_quantize_groups<format=bf16,out=e4m3,scale_rows=1>@sm_90a",
        "fp8_quantize_groups<format=bf16,out=e4m3,scale_rows=128>@sm_90a"};
    for (const int granularity : {kScaleOfRow, kScaleOfGroup, kScaleOfBlock}) {
        const Fp8QuantizeProblem p = of_parts(granularity, 300, 4096);
        CHECK_FALSE(takes_two_launches(p));
        const auto ranking = rank_fp8_quantize(p, kHopper);
        REQUIRE(ranking.choice);
        REQUIRE(ranking.choice->scales);
        CHECK_FALSE(ranking.choice->amax);
        CHECK(ranking.choice->counter_bytes == 0);
        CHECK(ranking.choice->multiplier_bytes == 0);
        CHECK(text_of(ranking.choice->scales->spec) == texts[granularity - 1]);
        CHECK(ranking.choice->scales->geometry.programmatic);
        REQUIRE(ranking.candidates.size() == 3);
        for (const Candidate& candidate : ranking.candidates) {
            CHECK(candidate.accepted() == (candidate.kernel == fp8_quantize_kernel(granularity)));
            if (!candidate.accepted())
                CHECK(reason_text(candidate) == "makes scales of another granularity");
        }
        CHECK_FALSE(rank_fp8_quantize(p, kHopper, KernelId::fp8_quantize).choice);
        const auto catalogue = fp8_quantize_catalogue(p, kHopper);
        CHECK(catalogue.size() == (granularity == kScaleOfRow ? 4 : 1));
        CHECK(std::ranges::find(catalogue, ranking.choice->scales->spec) != catalogue.end());
    }
}

TEST_CASE("rows are spread over threads by their width, and by whether there are many") {
    CHECK(text_of_scales(of_parts(kScaleOfRow, 1, 128)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=16,vectors=1>@sm_90a");
    CHECK(text_of_scales(of_parts(kScaleOfRow, 9, 14336)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=896,vectors=2>@sm_90a");
    CHECK(text_of_scales(of_parts(kScaleOfRow, 9, 65536)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=1024,vectors=8>@sm_90a");
    CHECK(text_of_scales(of_parts(kScaleOfRow, 9, 131080)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=1024>@sm_90a");
    CHECK(text_of_scales(of_parts(kScaleOfRow, 9, 4097)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=1,threads=832,vectors=5>@sm_90a");
    // Many of them: threads hold more.
    CHECK(text_of_scales(of_parts(kScaleOfRow, 16384, 1024)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=32,vectors=4>@sm_90a");
    CHECK(text_of_scales(of_parts(kScaleOfRow, 16384, 4096)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=128,vectors=4>@sm_90a");
    CHECK(text_of_scales(of_parts(kScaleOfRow, 16384, 14336)) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=224,vectors=8>@sm_90a");
    Fp8QuantizeProblem odd = of_parts(kScaleOfRow, 9, 256);
    odd.every_row.codes = false;
    CHECK(text_of_scales(odd) ==
          "fp8_quantize_rows<format=bf16,out=e4m3,width=1,threads=256,vectors=1>@sm_90a");
    // Several narrow rows share a block; the last block has those that are left.
    CHECK(choose_fp8_scales(of_parts(kScaleOfRow, 17, 128), kHopper).geometry.grid[0] == 3);
    CHECK(choose_fp8_scales(of_parts(kScaleOfRow, 17, 4096), kHopper).geometry.grid[0] == 17);
}

TEST_CASE("random matrices: tiles of groups and blocks cover each part once") {
    Random random = Random::fresh();
    INFO(random.text());
    for (int i = 0; i < 2000; ++i) {
        const int granularity = random.chance(0.5) ? kScaleOfGroup : kScaleOfBlock;
        const Fp8QuantizeProblem p =
            of_parts(granularity, random.integer(1, 3000), random.integer(1, 9000));
        CAPTURE(p.rows);
        CAPTURE(p.cols);
        const Fp8ScalesChoice choice = choose_fp8_scales(p, kHopper);
        constexpr std::int64_t width = kFp8ScaleCols;
        const auto threads = static_cast<int>(choice.geometry.block[0]);
        const std::int64_t height = std::int64_t{kFp8ThreadRows} * (threads / kFp8ScaleLanes);
        if (granularity == kScaleOfBlock) CHECK(height == kFp8ScaleCols);
        CHECK(choice.tiles_across * width >= p.cols);
        CHECK((choice.tiles_across - 1) * width < p.cols);
        REQUIRE(choice.geometry.grid[0] % static_cast<unsigned>(choice.tiles_across) == 0);
        const std::int64_t down = std::int64_t{choice.geometry.grid[0]} / choice.tiles_across;
        CHECK(down * height >= p.rows);
        CHECK((down - 1) * height < p.rows);
    }
}

TEST_CASE("refusals") {
    const auto reason = [](const Fp8QuantizeProblem& p, Arch arch) {
        const KernelId kernel = fp8_quantize_kernel(p.granularity);
        for (const Candidate& each : rank_fp8_quantize(p, typical_facts(arch)).candidates) {
            if (each.kernel == kernel) return reason_text(each);
        }
        return std::string("no candidate");
    };
    Fp8QuantizeProblem p = matrix(4, 4);
    CHECK(reason(p, {90, 'a'}).empty());
    CHECK(reason(p, {70, 0}) == "needs sm_75 or newer, this is sm_70");
    p.format = kFp8E4m3;
    CHECK(reason(p, {90, 'a'}) == "takes fp32, fp16, bf16, not e4m3");
    p = matrix(std::int64_t{1} << 40, std::int64_t{1} << 16, kTransposedCodes);
    CHECK(reason(p, {90, 'a'}) == "needs 1024 times 8589934592 tiles, above 2130706432");
    constexpr std::int64_t long_row = std::int64_t{1} << 31;
    CHECK(reason(of_parts(kScaleOfRow, 2, long_row), {90, 'a'}) ==
          "a row has 2147483648 elements, more than 2147483647");
    CHECK(reason(of_parts(kScaleOfRow, std::int64_t{1} << 40, 1024), {90, 'a'}) ==
          "needs 274877906944 blocks, a grid has at most 2147483647");
    CHECK(reason(of_parts(kScaleOfBlock, std::int64_t{1} << 40, std::int64_t{1} << 16),
                 {90, 'a'}) == "needs 512 times 8589934592 tiles, above 2130706432");
    CHECK(reason(of_parts(kScaleOfGroup, 2, long_row), {90, 'a'}).empty());
    CHECK(reason(of_parts(kScaleOfGroup, 2, 2), {70, 0}) == "needs sm_75 or newer, this is sm_70");
    // What fits in memory is far below that.
    CHECK(reason(matrix(std::int64_t{1} << 20, std::int64_t{1} << 20), {90, 'a'}).empty());
    CHECK(reason(matrix(std::int64_t{1} << 36, 1, kBothCodes), {90, 'a'}).empty());
}

}  // namespace
}  // namespace jitney::policy
