// Programmatic dependent launches: a grid may begin before the one before it has ended.
#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/toys.hpp"

using namespace jitney::emulator;
namespace toys = jitney::toys;

namespace {

constexpr unsigned kThreads = 64;
constexpr int kWithWork = 50;

// The report of the fault that a launch ends in.
std::string fault_where(const Kernel& kernel, bool programmatic) {
    const Buffer in = counting(4 * kThreads);
    const Buffer out = output(kThreads);
    toys::CopyParams params{in.as<float>(), out.as<float>(), kWithWork, 0};
    jitney::runtime::LaunchShape shape;
    shape.block.x = kThreads;
    shape.shared_bytes = 16 * kThreads;
    shape.programmatic_dependent = programmatic;
    void* arguments[] = {&params};
    try {
        launch(kernel, shape, arguments, {.seed = run_seed()});
    } catch (const Fault& fault) {
        return fault.what();
    }
    for (int i = 0; i < kWithWork; ++i)
        CHECK(out.as<float>()[i] == static_cast<float>(i));
    return {};
}

}  // namespace

TEST_CASE("blocks come in the order that was asked for, and no others") {
    constexpr unsigned kBlocks = 60;
    const auto arrivals = [&](BlockOrder order, const std::vector<std::uint64_t>& only,
                              std::uint64_t seed) {
        const Buffer done(sizeof(unsigned), "done");
        *done.as<unsigned>() = 0;
        const Buffer came = output(kBlocks);
        toys::SumParams params{nullptr, came.as<float>(), done.as<unsigned>(), nullptr, 0};
        jitney::runtime::LaunchShape shape;
        shape.grid = {kBlocks / 4, 2, 2};
        shape.block.x = kThreads;
        void* arguments[] = {&params};
        launch(toys::notes_arrivals, shape, arguments,
               {.seed = seed, .order = order, .only = only});
        return std::vector<float>(came.as<float>(), came.as<float>() + *done.as<unsigned>());
    };
    std::vector<std::uint64_t> all(kBlocks);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    for (const std::vector<std::uint64_t>& only :
         {std::vector<std::uint64_t>{}, {kBlocks - 1}, {3, 17, 18, 59}}) {
        std::vector<float> expected;
        for (const std::uint64_t block : only.empty() ? all : only)
            expected.push_back(static_cast<float>(block % (kBlocks / 4)));
        CHECK(arrivals(BlockOrder::ascending, only, run_seed()) == expected);
        std::vector<float> sorted = arrivals(BlockOrder::shuffled, only, run_seed());
        std::reverse(expected.begin(), expected.end());
        CHECK(arrivals(BlockOrder::descending, only, run_seed()) == expected);
        std::sort(sorted.begin(), sorted.end());
        std::sort(expected.begin(), expected.end());
        CHECK(sorted == expected);
    }
    CHECK(arrivals(BlockOrder::shuffled, {}, 1) != arrivals(BlockOrder::shuffled, {}, 2));
}

TEST_CASE(
    "what is touched before the grid before has ended is seen, where the launch allows that") {
    for (const Kernel* kernel :
         {&toys::waits_for_the_grid, &toys::reads_before_the_grid, &toys::copies_before_the_grid,
          &toys::counts_before_the_grid, &toys::exits_before_the_grid}) {
        CHECK(fault_where(*kernel, false).empty());
    }
    CHECK(fault_where(toys::waits_for_the_grid, true).empty());
    constexpr const char* early = "touches global memory before it has waited for the grid before";
    if (kInstrumented) CHECK_SAYS(fault_where(toys::reads_before_the_grid, true), early);
    CHECK_SAYS(fault_where(toys::copies_before_the_grid, true), early);
    CHECK_SAYS(fault_where(toys::counts_before_the_grid, true), early);
    CHECK_SAYS(fault_where(toys::exits_before_the_grid, true),
               "exits without having waited for the grid before");
}
