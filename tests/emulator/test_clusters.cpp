// Clusters: copies into several blocks at once, arrivals at each other's barriers, and ends.
#include <cstring>
#include <vector>

#include "tests/emulator/machine/tensor_map.hpp"
#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/hopper.hpp"

using namespace jitney::emulator;
namespace runtime = jitney::runtime;
namespace toys = jitney::toys;

namespace {

constexpr unsigned kClusters = 3;
constexpr unsigned kRounds = 5;
constexpr unsigned kWords = 32;  // of half a box

// Of [clusters, 2, rounds, 32] words that count.
struct Source {
    Source() : buffer(kClusters * 2 * kRounds * kWords * 4, "the tensor") {
        for (unsigned i = 0; i < buffer.bytes() / 4; ++i)
            buffer.as<unsigned>()[i] = i;
        shape.rank = 4;
        shape.dtype = jitney::DType::int32;
        shape.size = {kWords, kRounds, 2, kClusters};
        shape.stride_bytes = {kWords * 4, kRounds * kWords * 4, 2 * kRounds * kWords * 4};
        shape.box = {kWords, 1, 1, 1};
    }
    Buffer buffer;
    runtime::TensorMapShape shape;
};

void run_cluster(const Kernel& kernel, const Buffer& out, std::uint64_t seed,
                 unsigned blocks = 2 * kClusters, unsigned size = 2) {
    const Source source;
    runtime::LaunchShape shape;
    shape.grid.x = blocks;
    shape.block.x = 64;
    shape.cluster.x = size;
    shape.shared_bytes = 2 * kWords * 4 + 16;
    toys::MulticastParams params{tensor_map_bits(source.buffer.data(), source.shape),
                                 out.as<unsigned>(), kWords * 4, static_cast<int>(kRounds)};
    void* arguments[] = {&params};
    launch(kernel, shape, arguments, {.seed = seed});
}

std::string fault_of_cluster(const Kernel& kernel, std::uint64_t seed = run_seed(),
                             unsigned blocks = 2 * kClusters, unsigned size = 2) {
    const Buffer out = output(2 * kClusters * kRounds * 2 * kWords);
    try {
        run_cluster(kernel, out, seed, blocks, size);
    } catch (const Fault& fault) {
        return fault.what();
    }
    return {};
}

}  // namespace

TEST_CASE("both blocks of a cluster get what each of them brings") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Buffer out = output(2 * kClusters * kRounds * 2 * kWords);
        run_cluster(toys::multicasts, out, run_seed() + seed);
        bool right = true;
        for (unsigned block = 0; block < 2 * kClusters; ++block) {
            for (unsigned round = 0; round < kRounds; ++round) {
                for (unsigned i = 0; i < 2 * kWords; ++i) {
                    const unsigned from =
                        ((block / 2 * 2 + i / kWords) * kRounds + round) * kWords + i % kWords;
                    right = right &&
                            out.as<unsigned>()[(block * kRounds + round) * 2 * kWords + i] == from;
                }
            }
        }
        CHECK(right);
    }
}

TEST_CASE("what goes wrong between the blocks of a cluster is seen") {
    CHECK_SAYS(fault_of_cluster(toys::multicasts_to_itself),
               "which lacks 0 of 1 arrivals and 128 bytes");
    CHECK_SAYS(fault_of_cluster(toys::waits_for_the_cluster_twice), "twice without a wait");
    bool ended = false;
    for (std::uint64_t seed = run_seed(); seed < run_seed() + 20; ++seed) {
        if (kInstrumented) {
            CHECK_FALSE(fault_of_cluster(toys::multicasts_before_they_are_made, seed).empty());
            CHECK_FALSE(fault_of_cluster(toys::multicasts_into_use, seed).empty());
        }
        ended = ended || !fault_of_cluster(toys::ends_before_the_other, seed).empty();
    }
    CHECK(ended);
}

TEST_CASE(
    "a grid that is not made of whole clusters is refused, and so are blocks without a peer") {
    CHECK_SAYS(fault_of_cluster(toys::multicasts, run_seed(), 5), "is not made of clusters of 2");
    CHECK_SAYS(fault_of_cluster(toys::multicasts, run_seed(), 18, 9), "where it has up to 8");
    CHECK_SAYS(fault_of_cluster(toys::multicasts, run_seed(), 2, 1), "of a cluster of 1");
}
