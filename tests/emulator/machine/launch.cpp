#include "tests/emulator/machine/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulator/machine/cluster.hpp"
#include "tests/emulator/machine/fault.hpp"

namespace jitney::emulator {
namespace {

// Turns that a block gets before its neighbour on the same worker: of all magnitudes up to 2^this.
constexpr unsigned kMostTurnBits = 12;
// A block that sleeps, at a place where others may go first, sleeps until all the others do, too,
// or have finished, or once in so many rounds until then.
constexpr unsigned kWakeOnceIn = 64;
// What every GPU with clusters takes.
constexpr std::uint64_t kMostBlocksOfCluster = 8;

void check(const Kernel& kernel, const runtime::LaunchShape& shape) {
    const auto refuse = [&](const std::string& why) {
        throw Fault(fmt::format("{} can't be launched: {}", kernel.name, why));
    };
    const runtime::Dim3 grid = shape.grid;
    const runtime::Dim3 block = shape.block;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) refuse("its grid is empty");
    if (grid.x > 0x7fffffffu || grid.y > 0xffffu || grid.z > 0xffffu) {
        refuse(fmt::format("a grid of {} x {} x {} is more than any GPU takes", grid.x, grid.y,
                           grid.z));
    }
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (threads == 0 || threads > kernel.max_threads || threads > Block::max_threads ||
        block.z > 64) {
        refuse(fmt::format("a block of {} x {} x {} threads, where it takes up to {}", block.x,
                           block.y, block.z, std::min(kernel.max_threads, Block::max_threads)));
    }
    if (shape.shared_bytes < 0 || static_cast<std::size_t>(shape.shared_bytes) > Arena::max_bytes) {
        refuse(fmt::format("{} bytes of shared memory, where a block can have {}",
                           shape.shared_bytes, Arena::max_bytes));
    }
    const runtime::Dim3 cluster = shape.cluster;
    const std::uint64_t blocks = std::uint64_t{cluster.x} * cluster.y * cluster.z;
    if (blocks == 0 || blocks > kMostBlocksOfCluster) {
        refuse(fmt::format("a cluster of {} x {} x {} blocks, where it has up to {}", cluster.x,
                           cluster.y, cluster.z, kMostBlocksOfCluster));
    }
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
        refuse(fmt::format("a grid of {} x {} x {} is not made of clusters of {} x {} x {}", grid.x,
                           grid.y, grid.z, cluster.x, cluster.y, cluster.z));
    }
}

unsigned workers_wanted(const Options& options) {
    if (options.order != BlockOrder::shuffled) return 1;
    if (options.workers != 0) return options.workers;
    const char* text = std::getenv("JITNEY_EMULATOR_WORKERS");
    return text == nullptr ? 1u : std::max(1u, static_cast<unsigned>(std::atoi(text)));
}

// The clusters of a launch, most of which are single blocks, in their order for the workers to
// take.
class Queue {
  public:
    Queue(std::uint64_t clusters, const Options& options)
        : order_(options.only.begin(), options.only.end()) {
        if (order_.empty()) {
            order_.resize(clusters);
            std::iota(order_.begin(), order_.end(), std::uint64_t{0});
        }
        if (options.order == BlockOrder::descending) std::reverse(order_.begin(), order_.end());
        if (options.order != BlockOrder::shuffled) return;
        Random random(options.seed);
        for (std::size_t i = order_.size(); i > 1; --i)
            std::swap(order_[i - 1], order_[random.next() % i]);
    }
    bool take(std::uint64_t& cluster) {
        const std::size_t place = next_.fetch_add(1);
        if (stopped_.load() || place >= order_.size()) return false;
        cluster = order_[place];
        return true;
    }
    void stop() { stopped_.store(true); }
    bool stopped() const { return stopped_.load(); }

  private:
    std::vector<std::uint64_t> order_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> stopped_{false};
};

// Blocks that ran before, with their stacks and shared memory: making them anew costs more than
// a small launch.
std::vector<std::unique_ptr<Cluster>>& spare_clusters() {
    thread_local std::vector<std::unique_ptr<Cluster>> clusters;
    return clusters;
}

void work(const Grid& grid, Queue& queue, std::uint64_t seed, unsigned resident) {
    std::vector<std::unique_ptr<Cluster>>& spare = spare_clusters();
    while (spare.size() < resident)
        spare.push_back(std::make_unique<Cluster>());
    std::vector<Cluster*> idle;
    for (unsigned i = 0; i < resident; ++i)
        idle.push_back(spare[i].get());
    std::vector<Cluster*> awake;
    std::vector<Cluster*> asleep;
    Random random(seed);
    const auto any_of = [&random](const std::vector<Cluster*>& clusters) {
        return random.below(static_cast<unsigned>(clusters.size()));
    };
    const auto move = [](std::vector<Cluster*>& from, unsigned place, std::vector<Cluster*>& to) {
        to.push_back(from[place]);
        from.erase(from.begin() + place);
    };
    for (;;) {
        std::uint64_t number = 0;
        while (!idle.empty() && queue.take(number)) {
            idle.back()->begin(grid, number,
                               Random(seed ^ (number + 1) * 0x9e3779b97f4a7c15u).next());
            awake.push_back(idle.back());
            idle.pop_back();
        }
        if ((awake.empty() && asleep.empty()) || queue.stopped()) return;
        if (awake.empty() || (!asleep.empty() && random.once_in(kWakeOnceIn))) {
            move(asleep, any_of(asleep), awake);
        }
        const unsigned chosen = any_of(awake);
        switch (awake[chosen]->run(1 + random.below(1u << random.below(kMostTurnBits)))) {
            case Block::State::runs:
            case Block::State::stuck:
                break;
            case Block::State::sleeps:
                move(awake, chosen, asleep);
                break;
            case Block::State::finished:
                move(awake, chosen, idle);
                break;
        }
    }
}

}  // namespace

void launch(const Kernel& kernel, const runtime::LaunchShape& shape, void* const* arguments,
            const Options& options) {
    check(kernel, shape);
    Grid grid;
    grid.kernel = kernel.name;
    grid.call = kernel.call;
    grid.arguments = arguments;
    grid.grid_size = {shape.grid.x, shape.grid.y, shape.grid.z};
    grid.block_size = {shape.block.x, shape.block.y, shape.block.z};
    grid.cluster_size = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
    grid.shared_bytes = static_cast<std::size_t>(shape.shared_bytes);
    grid.programmatic = shape.programmatic_dependent;

    const std::uint64_t blocks = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
    Queue queue(blocks / (shape.cluster.x * shape.cluster.y * shape.cluster.z), options);
    std::mutex mutex;
    std::exception_ptr failure;
    const unsigned resident =
        options.order == BlockOrder::shuffled ? std::max(1u, options.resident) : 1u;
    const auto run = [&] {
        try {
            work(grid, queue, options.seed, resident);
        } catch (...) {
            queue.stop();
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> helpers;
    for (unsigned i = 1; i < workers_wanted(options); ++i)
        helpers.emplace_back(run);
    run();
    for (std::thread& helper : helpers)
        helper.join();
    if (!failure) return;
    try {
        std::rethrow_exception(failure);
    } catch (const Fault& fault) {
        throw Fault(fmt::format("{}  seed {}", fault.what(), options.seed));
    }
}

}  // namespace jitney::emulator
