#include <doctest/doctest.h>

#include "runtime/device.hpp"
#include "runtime/launch.hpp"
#include "runtime/runtime.hpp"
#include "runtime/workspace.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/runtime/child.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using namespace jitney::runtime;

namespace {

void call(Stream stream) {
    const DeviceInfo& device = current_device();
    const Kernel& kernel = runtime::runtime().kernel(tests::tiny_key(), device.ordinal,
                                                     tests::tiny_describe(), stream);
    const Workspace workspace = take_workspace(stream, 4096, 256);
    launch(kernel, {}, nullptr, stream);
}

}  // namespace

TEST_CASE("scenario: the hot path" * doctest::skip()) {
    auto* stream = reinterpret_cast<Stream>(std::uintptr_t{0x50});
    call(stream);
    fake::Cuda& fake = tests::fake_cuda();
    const int loads = fake.loads;
    const int allocations = fake.allocations;
    const int descriptions = tests::tiny_descriptions;
    const long before = tests::allocations_of_this_thread();
    for (int i = 0; i < 1000; ++i)
        call(stream);
    CHECK(tests::allocations_of_this_thread() == before);
    CHECK(fake.launches == 1001);
    CHECK(fake.loads == loads);
    CHECK(fake.allocations == allocations);
    CHECK(fake.shared_grants == 1);
    CHECK(fake.synchronizations == 0);
    CHECK(tests::tiny_descriptions == descriptions);
}

TEST_CASE("a call after the first allocates nothing, loads nothing, describes nothing") {
    const tests::TemporaryDirectory cache;
    REQUIRE_PASSED(tests::run("scenario: the hot path", tests::fakes(cache.path())));
}
