// Each wrapper of an instruction (kernel_sources/common), by itself: the emulator has twins in
// their place, so that nothing but a GPU shows an operand in the wrong place, a wait too many or
// too few, or an order of memory that is missing.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "runtime/device.hpp"
#include "runtime/launch.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tensor_map.hpp"
#include "tests/gpu/device.hpp"
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/source.hpp"

namespace jitney::tests {
namespace {

using wrappers::Call;
using wrappers::Words;

int arch() {
    const runtime::DeviceInfo& device = runtime::device(0);
    return 10 * device.major + device.minor;
}

// By its name and how much shared memory it has.
const runtime::Kernel& kernel_of(const std::string& name, int shared_bytes) {
    static std::map<std::string, std::uint64_t> numbers;
    const std::string text = name + " " + std::to_string(shared_bytes);
    const std::uint64_t number = numbers.emplace(text, numbers.size()).first->second;
    // No specialization of the library looks like this.
    const runtime::KernelKey key{{~std::uint64_t{0}, number, 0, 0, 0}};
    struct Context {
        const std::string& name;
        int shared_bytes;
    } context{name, shared_bytes};
    const runtime::Describe describe{[](const void* with, const runtime::KernelKey&) {
                                         const auto& of = *static_cast<const Context*>(with);
                                         return wrappers::source_of(
                                             of.name, runtime::device(0).arch, of.shared_bytes);
                                     },
                                     &context};
    return runtime::runtime().kernel(key, 0, describe, nullptr);
}

std::span<const std::byte> bytes_of(const Words& words) {
    return std::as_bytes(std::span(words));
}

void start(const Call& call, const DeviceBuffer& in, const DeviceBuffer& out, Stream stream,
           bool programmatic = false) {
    runtime::LaunchShape shape;
    shape.grid.x = call.blocks;
    shape.block.x = call.threads;
    shape.cluster.x = call.cluster;
    shape.shared_bytes = call.shared_bytes;
    shape.programmatic_dependent = programmatic;
    auto* from = static_cast<unsigned*>(in.data());
    auto* to = static_cast<unsigned*>(out.data());
    std::array<runtime::TensorMap, 2> maps{};
    if (call.tensor) {
        maps = {runtime::make_tensor_map(from + wrappers::kHeaderWords, *call.tensor),
                runtime::make_tensor_map(to + wrappers::kHeaderWords, *call.tensor)};
    }
    void* parameters[] = {&maps, &from, &to};
    runtime::launch(kernel_of(call.kernel, call.shared_bytes), shape,
                    call.tensor ? parameters : parameters + 1, stream);
}

Words run(const Call& call) {
    DeviceBuffer in(std::max<std::size_t>(call.in.size(), 1) * sizeof(unsigned));
    DeviceBuffer out(call.out.size() * sizeof(unsigned));
    in.upload(bytes_of(call.in));
    out.upload(bytes_of(call.out));
    const TestStream stream;
    start(call, in, out, stream);
    stream.synchronize();
    Words words(call.out.size());
    out.download(std::as_writable_bytes(std::span(words)));
    return words;
}

}  // namespace

TEST_CASE("wrappers of instructions") {
    for (const wrappers::Case& each : wrappers::cases()) {
        INFO(each.name);
        if (each.runs_on(arch()) && (!each.unseen || is_all())) each.check(&run, arch());
    }
}

// What the last group copies is larger than the caches and was never read: some of it is still
// under way when a wait for all but one is over, in some block at least.
TEST_CASE("a wait for all groups but the newest does not wait for that") {
    if (arch() < 80) return;
    Call call{.kernel = "wait_for_all_but_one",
              .blocks = 512,
              .threads = 32,
              .shared_bytes = 64 * 32 * 16};
    call.in.assign(std::size_t{64} * call.blocks * call.threads * 4, 1);
    call.out.assign(std::size_t{call.blocks} * call.threads, 0);
    const Words missing = run(call);
    CHECK(std::ranges::any_of(missing, [](unsigned count) { return count != 0; }));
}

TEST_CASE("a grid begins when the one before lets it, and waits until that has ended") {
    if (arch() < 90) return;
    const Call first{.kernel = "first_grid", .threads = 1};
    const Call second{.kernel = "second_grid", .threads = 1};
    DeviceBuffer flags(4 * sizeof(unsigned));
    const TestStream stream;
    // Loaded before, so that the second launch follows the first at once.
    start(first, flags, flags, stream);
    start(second, flags, flags, stream);
    stream.synchronize();
    int begun_early = 0;
    for (int again = 0; again < 20; ++again) {
        flags.fill(std::byte{0});
        synchronize();
        start(first, flags, flags, stream);
        start(second, flags, flags, stream, true);
        stream.synchronize();
        Words seen(4);
        flags.download(std::as_writable_bytes(std::span(seen)));
        CHECK(seen[1] == 1);
        CHECK(seen[3] == 1);
        begun_early += seen[0] == 1 ? 1 : 0;
    }
    CHECK(begun_early >= 1);
}

}  // namespace jitney::tests
