// The twins do what the wrappers do that they stand for: both are held against tests/wrappers.
#include "tests/wrappers/cases.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/emulator/machine/tensor_map.hpp"
#include "tests/emulator/test_support.hpp"
#include "tests/emulator/toys/wrappers.hpp"

namespace jitney::emulator {
namespace {

constexpr int kArch = 90;

wrappers::Words run(const wrappers::Call& call) {
    const auto found = std::ranges::find_if(
        toys::wrapper_kernels, [&](const Kernel& kernel) { return kernel.name == call.kernel; });
    REQUIRE(found != toys::wrapper_kernels.end());
    const auto buffer_of = [](const wrappers::Words& words, const char* name) {
        Buffer buffer(words.size() * sizeof(unsigned), name);
        std::memcpy(buffer.data(), words.data(), buffer.bytes());
        return buffer;
    };
    Buffer in = buffer_of(call.in, "in");
    const Buffer out = buffer_of(call.out, "out");
    in.make_read_only();
    const unsigned* from = in.as<unsigned>();
    unsigned* to = out.as<unsigned>();
    runtime::LaunchShape shape;
    shape.grid.x = call.blocks;
    shape.block.x = call.threads;
    shape.cluster.x = call.cluster;
    shape.shared_bytes = call.shared_bytes;
    std::array<TensorMapBits, 2> maps{};
    if (call.tensor) {
        maps = {tensor_map_bits(from + wrappers::kHeaderWords, *call.tensor),
                tensor_map_bits(to + wrappers::kHeaderWords, *call.tensor)};
    }
    void* arguments[] = {&maps, &from, &to};
    launch(*found, shape, call.tensor ? arguments : arguments + 1, {.seed = run_seed()});
    wrappers::Words words(call.out.size());
    std::memcpy(words.data(), out.data(), out.bytes());
    return words;
}

}  // namespace

TEST_CASE("wrappers of instructions") {
    for (const wrappers::Case& each : wrappers::cases()) {
        INFO(each.name);
        each.check(&run, kArch);
    }
}

TEST_CASE("the kernels of the wrappers' tests are those that are named") {
    const std::vector<std::string> names = wrappers::kernels_of(kArch);
    CHECK(names.size() == toys::wrapper_kernels.size());
    for (const Kernel& kernel : toys::wrapper_kernels)
        CHECK(std::ranges::count(names, kernel.name) == 1);
}

}  // namespace jitney::emulator
