// The map of packed queries: every tile once, the last of a request first, the rest marked.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel_sources/attention/work_map.h"
#include "policy/spec.hpp"
#include "tests/emulator/kernels/emulated_tensor.hpp"
#include "tests/emulator/kernels/launch_choice.hpp"
#include "tests/emulator/kernels/lines.hpp"

namespace jitney::emulator {
namespace {

struct MapCase {
    std::vector<int> lengths;
    int group = 1;
    int tile_m = 64;
    int spare = 0;  // slots more than tiles; negative: fewer
};

void run_case(const policy::Spec& spec, const MapCase& test, tests::Random& random) {
    std::vector<std::pair<int, int>> expected;
    tests::HostTensor indptr(DType::int32, {static_cast<std::int64_t>(test.lengths.size()) + 1});
    indptr.set(0, 0);
    for (std::size_t i = 0; i < test.lengths.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        indptr.set(at + 1, indptr.get(at) + test.lengths[i]);
        for (int tile = (test.lengths[i] * test.group + test.tile_m - 1) / test.tile_m; tile-- > 0;)
            expected.emplace_back(static_cast<int>(i), tile);
    }
    const int slots = std::max(static_cast<int>(expected.size()) + test.spare, 0);
    const EmulatedTensor lengths(indptr, EmulatedTensor::Use::input);
    tests::HostTensor stale(DType::int32, {slots});  // not poison, which is the mark, too
    stale.fill([](std::int64_t) { return 12345.0; });
    const EmulatedTensor batches(stale, EmulatedTensor::Use::output);
    const EmulatedTensor tiles(stale, EmulatedTensor::Use::output);
    WorkMapParams params{};
    params.qo_indptr = static_cast<const int*>(lengths.view().data);
    params.tile_batch = static_cast<int*>(batches.view().data);
    params.tile_index = static_cast<int*>(tiles.view().data);
    params.batch = static_cast<int>(test.lengths.size());
    params.group = test.group;
    params.tile_m = test.tile_m;
    params.slots = slots;
    policy::Geometry geometry;
    geometry.block[0] = static_cast<unsigned>(policy::value_of(spec, "threads"));
    geometry.shared_bytes = work_map_shared_bytes(policy::value_of(spec, "threads"));
    launch_choice(spec, geometry, &params, random);

    const tests::HostTensor got_batches = batches.download();
    const tests::HostTensor got_tiles = tiles.download();
    CHECK(got_batches.surroundings_intact());
    CHECK(got_tiles.surroundings_intact());
    for (int slot = 0; slot < slots; ++slot) {
        const bool used = slot < static_cast<int>(expected.size());
        const auto& [batch, tile] =
            used ? expected[static_cast<std::size_t>(slot)] : std::pair<int, int>{-1, -1};
        REQUIRE(got_batches.get(slot) == batch);
        if (used) REQUIRE(got_tiles.get(slot) == tile);
    }
}

std::vector<int> random_lengths(tests::Random& random, std::int64_t most) {
    std::vector<int> lengths(static_cast<std::size_t>(random.integer(1, most)));
    for (int& length : lengths)
        length = random.chance(0.3) ? 0 : static_cast<int>(random.integer(1, 200));
    return lengths;
}

}  // namespace

TEST_CASE("attn_work_map") {
    tests::Random random = tests::Random::fresh();
    MESSAGE(random.text());
    for (const Covered& covered : covered_lines(policy::KernelId::attn_work_map)) {
        CAPTURE(policy::text_of(covered.spec));
        for (const MapCase& test :
             {MapCase{{1}}, MapCase{{0, 0, 9}, 1, 64, 2}, MapCase{{0}, 1, 64, 3},
              MapCase{{}, 1, 64, 5}, MapCase{{64, 65, 63}, 1, 64, 0}, MapCase{{5000}, 8, 64, 1},
              MapCase{{100, 100}, 4, 64, -3}, MapCase{{100, 100}, 4, 64, -20}}) {
            run_case(covered.spec, test, random);
        }
        for (int i = 0; i < 6; ++i) {
            run_case(covered.spec,
                     {random_lengths(random, 300), static_cast<int>(random.integer(1, 8)),
                      random.chance(0.5) ? 64 : 128, static_cast<int>(random.integer(0, 9))},
                     random);
        }
    }
}

}  // namespace jitney::emulator
