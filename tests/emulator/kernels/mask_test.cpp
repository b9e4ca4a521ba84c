// Masks as bits: what attn_mask_bits writes, bit for bit, and the tiles that attn_prefill_mma
// passes over because of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernel_sources/attention/mask_bits.h"
#include "kernel_sources/attention/params.h"
#include "tests/emulator/kernels/attention_case.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"
#include "tests/support/mask_pattern.hpp"

namespace jitney::emulator {
namespace {

using policy::KernelId;

struct BitsCase {
    int batch = 1;
    int heads = 1;
    int rows = 1;
    int keys = 1;
    int padding = 0;  // bytes behind each row
    int shift = 0;    // bytes before the first
    // Of the requests, where each has a mask of its own; longer than the mask where left out.
    std::vector<int> q_lens = {};
    std::vector<int> kv_lens = {};
    int requests = 0;  // more than batch: they share one mask
};

struct Words {
    Words(std::size_t count, const char* name) : buffer(count * sizeof(unsigned), name) {
        std::memset(buffer.data(), 0x5a, buffer.bytes());
    }
    unsigned at(std::size_t i) const { return buffer.as<unsigned>()[i]; }

    Buffer buffer;
};

std::size_t sized(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

constexpr unsigned kUntouched = 0x5a5a5a5a;

std::size_t count_of_words(const BitsCase& test) {
    return sized(test.batch * test.heads * mask_bands(test.rows) * mask_groups(test.keys) *
                 mask_band_stride(test.rows));
}

// Words of rows and keys that are not read stay untouched, and so does their part of the summary.
void check_words(const BitsCase& test, const tests::HostTensor& mask, const Words& words,
                 const Words& summary) {
    const int groups = mask_groups(test.keys);
    const int bands = mask_bands(test.rows);
    const int spans = mask_spans(test.keys);
    const int stride = mask_band_stride(test.rows);
    for (int outer = 0; outer < test.batch * test.heads; ++outer) {
        const auto request = sized(outer / test.heads);
        const int rows =
            test.q_lens.empty() ? test.rows : std::min(test.rows, test.q_lens[request]);
        const int keys =
            test.kv_lens.empty() ? test.keys : std::min(test.keys, test.kv_lens[request]);
        std::vector<unsigned> expected(sized(bands * spans));
        for (int row = 0; row < bands * stride; ++row) {
            const int band = row / stride;
            for (int group = 0; group < groups; ++group) {
                unsigned word = 0;
                for (int key = group * 32; key < std::min(group * 32 + 32, keys); ++key) {
                    const bool kept = row < rows && mask.at({outer / test.heads, outer % test.heads,
                                                             row, key}) != 0.0;
                    word |= (kept ? 1u : 0u) << key % 32;
                }
                const bool read = row < rows && group * 32 < keys;
                REQUIRE(words.at(sized(((outer * bands + band) * groups + group) * stride +
                                       row % stride)) == (read ? word : kUntouched));
                if (word != 0) expected[sized(band * spans + group / 32)] |= 1u << group % 32;
            }
        }
        for (int band = 0; band < bands; ++band) {
            for (int span = 0; span < spans; ++span) {
                const bool read = band * kMaskBandRows < rows && span * kMaskSpanKeys < keys;
                REQUIRE(summary.at(sized((outer * bands + band) * spans + span)) ==
                        (read ? expected[sized(band * spans + span)] : kUntouched));
            }
        }
    }
}

// Elements that a request reaches may be read, and no others.
std::vector<bool> reached(const BitsCase& test) {
    std::vector<bool> elements;
    for (int request = 0; request < test.batch; ++request) {
        for (int row = 0; row < test.heads * test.rows; ++row) {
            for (int key = 0; key < test.keys; ++key) {
                elements.push_back(
                    (test.q_lens.empty() || row % test.rows < test.q_lens[sized(request)]) &&
                    (test.kv_lens.empty() || key < test.kv_lens[sized(request)]));
            }
        }
    }
    return elements;
}

void run_bits(const policy::Spec& spec, const BitsCase& test, tests::Random& random) {
    CAPTURE(test.batch);
    CAPTURE(test.heads);
    CAPTURE(test.rows);
    CAPTURE(test.keys);
    CAPTURE(test.padding);
    CAPTURE(test.shift);
    tests::Layout layout;
    if (test.padding != 0) layout.padding = {0, 0, 0, test.padding};
    tests::HostTensor host(DType::boolean, {test.batch, test.heads, test.rows, test.keys}, layout);
    host.fill(tests::MaskPattern(random, test.keys));
    // Any byte but 0 is true.
    Tensor bytes = host.view();
    auto* first = static_cast<unsigned char*>(bytes.data);
    for (std::int64_t i = 0; i < host.elements(); ++i) {
        const std::int64_t at = i / test.keys * bytes.strides[2] + i % test.keys;
        if (first[at] != 0) first[at] = static_cast<unsigned char>(random.integer(1, 255));
    }
    const EmulatedTensor mask(host, EmulatedTensor::Use::input, test.shift, reached(test));
    const Words words(count_of_words(test), "words");
    const Words summary(
        sized(test.batch * test.heads * mask_bands(test.rows) * mask_spans(test.keys)), "summary");

    tests::HostTensor starts(DType::int32, {test.batch + 1});
    tests::HostTensor lengths(DType::int32, {test.batch});
    starts.set(0, 0);
    for (int i = 0; i < test.batch; ++i) {
        starts.set(i + 1, starts.get(i) + (test.q_lens.empty() ? 0 : test.q_lens[sized(i)]));
        lengths.set(i, test.kv_lens.empty() ? 0 : test.kv_lens[sized(i)]);
    }
    const EmulatedTensor qo_indptr(starts, EmulatedTensor::Use::input);
    const EmulatedTensor kv_lens(lengths, EmulatedTensor::Use::input);

    AttentionParams params{};
    const Tensor view = mask.view();
    params.mask = static_cast<const unsigned char*>(view.data);
    params.mask_strides = {view.strides[0], view.strides[2], view.strides[1]};
    params.mask_bits = {words.buffer.as<unsigned>(),
                        summary.buffer.as<unsigned>(),
                        test.batch,
                        test.heads,
                        test.rows,
                        test.keys};
    params.batch = std::max(test.batch, test.requests);
    params.q_len = test.rows + 5;
    params.kv_len = test.keys + 5;
    if (!test.q_lens.empty()) params.qo_indptr = static_cast<const int*>(qo_indptr.view().data);
    if (!test.kv_lens.empty()) {
        params.kv_lengths = kKvLenArray;
        params.kv_lens = static_cast<const int*>(kv_lens.view().data);
    }
    policy::Geometry geometry;
    geometry.grid[0] = static_cast<unsigned>(test.batch * test.heads * mask_bands(test.rows) *
                                             mask_spans(test.keys));
    const int threads = policy::value_of(spec, "threads");
    geometry.block[0] = static_cast<unsigned>(threads);
    geometry.shared_bytes = mask_bits_shared_bytes(threads);
    launch_choice(spec, geometry, &params, random);
    check_words(test, host, words, summary);
}

}  // namespace

TEST_CASE("attn_mask_bits") {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    for (const Covered& covered : covered_lines(KernelId::attn_mask_bits)) {
        CAPTURE(policy::text_of(covered.spec));
        for (const BitsCase& test :
             {BitsCase{}, BitsCase{1, 1, 1, 64}, BitsCase{2, 1, 33, 1024}, BitsCase{1, 2, 32, 1040},
              BitsCase{1, 1, 5, 3000, 8}, BitsCase{1, 1, 40, 100, 0, 1},
              BitsCase{1, 1, 3, 1056, 0, 16}, BitsCase{2, 2, 70, 1100, 4, 0, {70, 3}, {1100, 33}},
              BitsCase{3, 1, 40, 1088, 0, 0, {0, 33, 40}, {5, 1025, 0}},
              BitsCase{1, 1, 40, 70, 0, 0, {}, {}, 3}}) {
            run_bits(covered.spec, test, random);
        }
        for (int i = 0; i < 6; ++i) {
            BitsCase test;
            test.heads = static_cast<int>(random.integer(1, 2));
            test.rows = static_cast<int>(random.integer(1, 80));
            test.keys = static_cast<int>(random.integer(1, 2200));
            test.padding = static_cast<int>(random.chance(0.5) ? random.integer(0, 20) : 0);
            test.shift = static_cast<int>(random.chance(0.5) ? random.integer(0, 20) : 0);
            run_bits(covered.spec, test, random);
        }
    }
}

TEST_CASE("masks that drop most tiles") {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    int ran = 0;
    for (const Covered& covered : covered_lines(KernelId::attn_prefill_mma)) {
        const policy::AttentionProblem& fixed = covered.attention->problem;
        if (!fixed.mask || !covered.attention->is_plain()) continue;
        CAPTURE(policy::text_of(covered.spec));
        constexpr std::int64_t kv_len = 1500;
        const auto key_of = [](std::int64_t i) { return i % kv_len; };
        const auto row_of = [](std::int64_t i) { return i / kv_len; };
        AttentionCase test;
        test.shape = {1,
                      150,
                      kv_len,
                      2,
                      1,
                      fixed.head_dim,
                      DType::bf16,
                      tests::MaskKind::queries,
                      fixed.causal,
                      {}};
        test.shape.dtype = static_cast<DType>(fixed.format);
        const auto run = [&](std::function<bool(std::int64_t)> keep) {
            test.keep = std::move(keep);
            ran += run_attention(covered, test, random) ? 1 : 0;
        };
        run([&](std::int64_t i) { return key_of(i) == 1499 - row_of(i) * 7; });
        run([&](std::int64_t i) { return key_of(i) < 16 && row_of(i) == 149; });
        run([&](std::int64_t i) { return key_of(i) / 16 % 29 == 5 && row_of(i) > 40; });
        run([](std::int64_t) { return false; });
        run([&](std::int64_t i) { return key_of(i) < 300 + row_of(i); });
        // Every third key is kept by none but rows that causality hides it from.
        run([&](std::int64_t i) {
            return key_of(i) % 3 != 0 || key_of(i) > row_of(i) + kv_len - 150;
        });
    }
    CHECK(ran >= 10);
}

// More keys than attention keeps the summary of at a time.
TEST_CASE("masks that are longer than their summary's place") {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    int ran = 0;
    for (const Covered& covered : covered_lines(KernelId::attn_prefill_mma)) {
        const policy::AttentionProblem& fixed = covered.attention->problem;
        if (!fixed.mask || !covered.attention->is_plain() || fixed.head_dim > 64) continue;
        CAPTURE(policy::text_of(covered.spec));
        const std::int64_t kv_len = 133000;
        for (const std::vector<std::int64_t>& kept :
             {std::vector<std::int64_t>{3, 131071, 131072, 132999},
              std::vector<std::int64_t>{131020, 131090}}) {
            AttentionCase test;
            test.shape = {
                1,     130, kv_len, 1, 1, fixed.head_dim, DType::bf16, tests::MaskKind::keys,
                false, {}};
            test.shape.dtype = static_cast<DType>(fixed.format);
            test.keep = [&kept](std::int64_t i) { return std::ranges::count(kept, i) != 0; };
            ran += run_attention(covered, test, random) ? 1 : 0;
        }
    }
    CHECK(ran >= 3);
}

}  // namespace jitney::emulator
