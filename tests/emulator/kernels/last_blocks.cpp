#include "tests/emulator/kernels/last_blocks.hpp"

#include <doctest/doctest.h>

namespace jitney::emulator {

std::vector<std::uint64_t> blocks_from(std::int64_t first, std::int64_t count, std::int64_t step) {
    std::vector<std::uint64_t> blocks;
    for (std::int64_t i = 0; i < count; ++i)
        blocks.push_back(static_cast<std::uint64_t>(first + i * step));
    return blocks;
}

void launch_last(const policy::Spec& spec, policy::Geometry geometry, std::int64_t before,
                 void* params, tests::Random& random) {
    const std::vector<std::uint64_t> last =
        blocks_from(before, static_cast<std::int64_t>(geometry.grid[0]));
    REQUIRE(before + geometry.grid[0] <= kLargestGrid);
    geometry.grid[0] += static_cast<unsigned>(before);
    launch_choice(spec, geometry, params, random, {.only = last});
}

DType dtype_of(const policy::Spec& spec, const char* name) {
    return static_cast<DType>(policy::value_of(spec, name));
}

}  // namespace jitney::emulator
