// Programmatic dependent launches: a grid may begin before the one before it has ended.
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
